#include "learn/dataset.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "learn/losses.h"
#include "tests/learn/learn_files.h"

namespace tahl::learn {
namespace {

using nn::PolicyHead;

Expected<Dataset> random_data(const test::Folder& folder, int games, Split split = Split::Train) {
  test::write_games(folder.path / "games.pgn", games, 7);
  PackOptions options;
  options.inputs = {folder.path / "games.pgn"};
  options.out = folder.path / "data";
  options.val = options.test = 0.1;
  if (const auto report = pack(options); !report) return tl::unexpected(report.error());
  return Dataset::load(options.out, split);
}

TEST(Permutation, TakesEveryNumberOnce) {
  for (const std::uint64_t n : {1ull, 2ull, 3ull, 7ull, 64ull, 1000ull, 4097ull}) {
    const Permutation order(n, 5);
    std::vector<bool> taken(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t at = order(i);
      ASSERT_LT(at, n);
      EXPECT_FALSE(taken[at]) << n;
      taken[at] = true;
    }
  }
}

TEST(Permutation, DependsOnTheSeedAndLeavesNoOrder) {
  const Permutation a(10000, 1), b(10000, 2);
  int same = 0, rising = 0;
  for (std::uint64_t i = 0; i + 1 < 10000; ++i) {
    same += a(i) == b(i);
    rising += a(i) < a(i + 1);
  }
  EXPECT_LT(same, 20);  // one expected
  EXPECT_NEAR(rising, 5000, 250);
}

TEST(Dataset, SamplesAreTheGamesOfThePgn) {
  const test::Folder folder;
  const auto data = random_data(folder, 40);
  ASSERT_TRUE(data) << data.error().message;
  std::uint64_t index = 0;
  const auto files = find_shards(folder.path / "data", Split::Train);
  ASSERT_TRUE(files);
  for (const auto& file : *files) {
    const auto shard = nn::Shard::open(file);
    for (std::size_t g = 0; g < shard->size(); ++g) {
      const auto game = nn::unpack_game(shard->game(g));
      const auto together = data->game_samples(g, PolicyHead::Planes12);
      ASSERT_TRUE(together);
      Game replayed;
      for (std::size_t ply = 0; ply < game->moves().size(); ++ply, ++index) {
        const auto sample = data->sample(index, PolicyHead::Planes12);
        ASSERT_TRUE(sample) << sample.error().message;
        std::vector<float> ours(19 * 64), truth(19 * 64);
        nn::unpack_rdt19(sample->planes, ours);
        nn::encode_rdt19(replayed, truth);
        EXPECT_EQ(ours, truth);
        EXPECT_EQ(sample->moves.size(),
                  static_cast<std::size_t>(legal_moves(replayed.position()).size()));
        const auto played =
            nn::policy_terms(PolicyHead::Planes12, replayed.position(), game->moves()[ply]);
        EXPECT_EQ(sample->moves[static_cast<std::size_t>(sample->target)].output, played.output);
        const bool white = replayed.position().side_to_move() == Color::White;
        const Result result = shard->game(g).result;
        const float value = result == Result::Draw                   ? 0.f
                            : (result == Result::WhiteWins) == white ? 1.f
                                                                     : -1.f;
        EXPECT_EQ(sample->value, value);
        EXPECT_EQ((*together)[ply].target, sample->target);
        replayed.play(game->moves()[ply]);
      }
    }
  }
  EXPECT_EQ(index, data->positions());
}

TEST(Dataset, AnUnderPromotionCountsAsTheQueenForAHeadWithoutIt) {
  const test::Folder folder;
  std::ofstream(folder.path / "games.pgn")
      << "[FEN \"8/P6k/8/8/8/8/8/K7 w - - 0 1\"]\n[SetUp \"1\"]\n\n1. a8=N Kg7 1-0\n\n";
  PackOptions options;
  options.inputs = {folder.path / "games.pgn"};
  options.out = folder.path / "data";
  options.val = options.test = 0;
  options.min_plies = 1;
  ASSERT_TRUE(pack(options));
  const auto data = Dataset::load(options.out, Split::Train);
  ASSERT_TRUE(data) << data.error().message;
  const auto four_moves = data->sample(0, PolicyHead::Planes12);
  const auto one_move = data->sample(0, PolicyHead::FromTo4096);
  ASSERT_TRUE(four_moves && one_move);
  EXPECT_EQ(four_moves->moves.size(), one_move->moves.size() + 3);
  EXPECT_EQ(one_move->moves[static_cast<std::size_t>(one_move->target)].output[0], 48 * 64 + 56);
}

TEST(Loader, ContinuesWhereAnotherStopped) {
  const test::Folder folder;
  const auto data = random_data(folder, 30);
  ASSERT_TRUE(data);
  const LoaderOptions options{PolicyHead::Planes12, 64, 9, 3};
  Loader whole(*data, options);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(whole.next());
  Loader later(*data, options, whole.taken());
  for (int i = 0; i < 40; ++i) {  // past the end of the first pass
    const auto a = whole.next(), b = later.next();
    ASSERT_TRUE(a && b);
    EXPECT_TRUE(torch::equal(a->planes, b->planes));
    EXPECT_TRUE(torch::equal(a->target, b->target));
    EXPECT_TRUE(torch::equal(a->value, b->value));
  }
}

TEST(Loader, OnePassTakesEveryPositionOnce) {
  const test::Folder folder;
  const auto data = random_data(folder, 30);
  ASSERT_TRUE(data);
  Loader loader(*data, {PolicyHead::Planes12, static_cast<std::int64_t>(data->positions()), 3, 1});
  const auto batch = loader.next();
  ASSERT_TRUE(batch);
  std::vector<Sample> in_order;
  for (std::uint64_t i = 0; i < data->positions(); ++i)
    in_order.push_back(*data->sample(i, PolicyHead::Planes12));
  const Batch all = make_batch(in_order, PolicyHead::Planes12);
  // Sums that a missing or doubled position would change.
  const auto squares = torch::arange(19 * 64, torch::kDouble).view({19, 8, 8});
  const auto fingerprint = [&squares](const torch::Tensor& planes) {
    return (planes.to(torch::kDouble) * squares).sum({1, 2, 3}).square().mean().item<double>();
  };
  EXPECT_NEAR(fingerprint(batch->planes), fingerprint(all.planes), 1e-3);
  EXPECT_EQ(batch->value.sum().item<float>(), all.value.sum().item<float>());
  EXPECT_EQ(batch->target.sum().item<std::int64_t>(), all.target.sum().item<std::int64_t>());
}

// Two positions of two and one moves, by hand.
Batch small_batch() {
  Sample a, b;
  a.moves = {{{3, 1}, {1, -1}, 2}, {{2}, {1}, 1}};
  a.target = 1;
  a.value = 1;
  b.moves = {{{0, 1, 2, 3}, {1, 1, -1, -1}, 4}};
  b.value = -1;
  a.planes = b.planes = nn::pack_rdt19(Position::initial(), false);
  const std::vector<Sample> both{a, b};
  return make_batch(both, PolicyHead::Planes12);
}

TEST(Losses, AMovesLogitIsItsSignedSum) {
  const auto outputs = torch::tensor({{1.f, 2.f, 3.f, 7.f}, {1.f, 2.f, 4.f, 8.f}});
  const auto logits = move_logits(outputs, small_batch());
  EXPECT_FLOAT_EQ(logits[0][0].item<float>(), 7 - 2);
  EXPECT_FLOAT_EQ(logits[0][1].item<float>(), 3);
  EXPECT_FLOAT_EQ(logits[1][0].item<float>(), 1 + 2 - 4 - 8);
  EXPECT_TRUE(std::isinf(logits[1][1].item<float>()));
}

TEST(Losses, AreTheTextbooksNumbers) {
  const auto outputs = torch::tensor({{1.f, 2.f, 3.f, 7.f}, {1.f, 2.f, 4.f, 8.f}});
  const auto l = losses(outputs, torch::tensor({0.5f, -0.5f}), small_batch(), 2.0);
  const double first = std::log(std::exp(5.0) + std::exp(3.0)) -
                       3.0;  // the second position has one move: no surprise
  EXPECT_NEAR(l.policy.item<double>(), first / 2, 1e-6);
  EXPECT_NEAR(l.value.item<double>(), 0.25, 1e-6);
  EXPECT_NEAR(l.total.item<double>(), first / 2 + 0.5, 1e-6);
}

TEST(Losses, GradientIsTheFiniteDifference) {
  const Batch batch = small_batch();
  auto outputs = torch::tensor({{1.f, 2.f, 3.f, 4.f}, {1.f, 2.f, 4.f, 8.f}}).requires_grad_();
  const auto values = torch::zeros({2});
  losses(outputs, values, batch, 1.0).policy.backward();
  for (std::int64_t i = 0; i < 4; ++i) {
    const float step = 1e-2f;
    const auto at = [&](float by) {
      auto moved = outputs.detach().clone();
      moved[0][i] += by;
      return losses(moved, values, batch, 1.0).policy.item<double>();
    };
    EXPECT_NEAR(outputs.grad()[0][i].item<double>(), (at(step) - at(-step)) / (2 * step), 1e-3)
        << i;
  }
  // Only legal moves share in the loss: position two's single move cannot be improved.
  EXPECT_NEAR(outputs.grad()[1].abs().max().item<double>(), 0, 1e-7);
}

TEST(Losses, CountsHits) {
  const auto logits = torch::tensor(
      {{1.f, 3.f, 2.f, 0.f, -1.f}, {5.f, 4.f, 3.f, 2.f, 1.f}, {1.f, 2.f, 3.f, 4.f, 5.f}});
  const auto target = torch::tensor({1, 2, 0}, torch::kInt64);
  EXPECT_EQ(hits(logits, target, 1), 1);
  EXPECT_EQ(hits(logits, target, 3), 2);
}

}  // namespace
}  // namespace tahl::learn
