#include "learn/trainer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "learn/checkpoint.h"
#include "learn/losses.h"
#include "tests/learn/learn_files.h"

namespace tahl::learn {
namespace {

namespace fs = std::filesystem;

nn::ArchConfig tiny() {
  nn::ArchConfig arch;
  arch.channels = 16;
  arch.blocks = 1;
  arch.se = true;
  arch.value_hidden = 16;
  return arch;
}

struct Data : test::Folder {
  Data() {
    test::write_games(path / "games.pgn", 60, 11);
    PackOptions options;
    options.inputs = {path / "games.pgn"};
    options.out = path / "data";
    options.val = options.test = 0.1;
    EXPECT_TRUE(pack(options));
  }
  TrainOptions options(const std::string& run) const {
    TrainOptions o;
    o.data = path / "data";
    o.out = path / run;
    o.arch = tiny();
    o.batch = 32;
    o.steps = 12;
    o.val_every = 6;
    o.val_positions = 64;
    o.log_every = 2;
    o.ema = 0.9;
    return o;
  }
};

void nothing(const std::string&) {}

Expected<TrainReport> run(const TrainOptions& options, std::uint64_t stop_after = 0) {
  auto trainer = Trainer::create(options);
  if (!trainer) return tl::unexpected(trainer.error());
  std::stop_source stop;
  // Held-out measurements come every six steps, and say so: a clock-free place to stop a run in the
  // middle.
  const auto say = [&](const std::string&) {
    if (stop_after > 0 && (*trainer)->state().step >= stop_after) stop.request_stop();
  };
  return (*trainer)->train(stop.get_token(), say, nothing);
}

TEST(Trainer, AKilledRunEndsWithTheSameWeightsAsAnUnbrokenOne) {
  const Data data;
  const auto whole = run(data.options("whole"));
  ASSERT_TRUE(whole) << whole.error().message;
  TrainOptions options = data.options("broken");
  const auto half = run(options, 6);
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_TRUE(half->stopped);
  EXPECT_EQ(half->state.step, 6u);
  options.resume = true;
  const auto rest = run(options);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_EQ(rest->state.step, 12u);

  const auto a = nn::read_net(whole->net), b = nn::read_net(rest->net);
  ASSERT_TRUE(a && b);
  for (const auto& [name, tensor] : a->tensors)
    EXPECT_EQ(tensor.data, b->tensors.at(name).data) << name;
  EXPECT_EQ(whole->heldout->nll, rest->heldout->nll);
}

TEST(Trainer, TheSameSeedGivesTheSameNetAndAnotherDoesNot) {
  const Data data;
  TrainOptions options = data.options("a");
  options.steps = 3;
  const auto a = run(options);
  options.out = data.path / "b";
  const auto b = run(options);
  options.out = data.path / "c";
  options.seed = 2;
  const auto c = run(options);
  ASSERT_TRUE(a && b && c);
  const auto name = nn::list_parameters(tiny()).front().name;
  const auto weights = [&](const TrainReport& r) {
    return nn::read_net(r.net)->tensors.at(name).data;
  };
  EXPECT_EQ(weights(*a), weights(*b));
  EXPECT_NE(weights(*a), weights(*c));
}

TEST(Trainer, ASliceOfOtherDataGoesOnFromTheWeights) {
  const Data first;
  const test::Folder folder;
  const auto before = run(first.options("first"));
  ASSERT_TRUE(before);
  test::write_games(folder.path / "games.pgn", 40, 12);
  PackOptions packing;
  packing.inputs = {folder.path / "games.pgn"};
  packing.out = folder.path / "data";
  ASSERT_TRUE(pack(packing));
  TrainOptions options = first.options("second");
  options.data = packing.out;
  options.resume = true;
  options.resume_from = checkpoint_path(first.path / "first");
  const auto after = run(options);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->state.step, 24u);
  EXPECT_EQ(after->state.slice_step, 12u);
  EXPECT_EQ(after->state.positions, 24u * 32);

  options.resume_from.clear();
  options.data = first.path / "data";
  const auto mixed = run(options);  // the second run's own checkpoint is not of these data
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().message.find('\n'), std::string::npos);
}

TEST(Trainer, WritesANetThatSaysWhereItComesFrom) {
  const Data data;
  const auto report = run(data.options("run"));
  ASSERT_TRUE(report);
  const auto net = nn::read_net(report->net);
  ASSERT_TRUE(net) << net.error().message;
  EXPECT_EQ(net->arch, tiny());
  EXPECT_EQ(net->encoding, "rdt19");
  EXPECT_EQ(net->metadata.at("positions_seen"), "384");
  for (const char* key : {"recipe", "data", "seed", "heldout"})
    EXPECT_FALSE(net->metadata.at(key).empty()) << key;
  EXPECT_NE(test::read_file(data.path / "run" / "curves.svg").find("<path"), std::string::npos);
  const std::string log = test::read_file(data.path / "run" / "log.jsonl");
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'),
            1 + 6 + 2);  // start, training points, held-out points
}

TEST(Trainer, RefusesABrokenCheckpointInOneLine) {
  const Data data;
  TrainOptions options = data.options("run");
  ASSERT_TRUE(run(options));
  const std::string whole = test::read_file(checkpoint_path(options.out));
  options.resume = true;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(checkpoint_path(options.out), std::ios::binary) << whole.substr(0, size);
    const auto report = run(options);
    ASSERT_FALSE(report) << size;
    EXPECT_EQ(report.error().message.find('\n'), std::string::npos);
    EXPECT_NE(report.error().message.find("checkpoint.pt"), std::string::npos);
  }
  std::ofstream(checkpoint_path(options.out), std::ios::binary) << whole;
  options.arch.blocks = 2;
  EXPECT_FALSE(run(options));
}

TEST(Trainer, WillNotStartOverARun) {
  const Data data;
  ASSERT_TRUE(run(data.options("run")));
  EXPECT_FALSE(run(data.options("run")));
}

TEST(Trainer, CosineEndsAtItsEnd) {
  const Data data;
  TrainOptions options = data.options("run");
  options.schedule = Schedule::Cosine;
  options.lr = 1e-2;
  options.lr_end = 1e-3;
  options.warmup = 4;
  options.log_every = 1;
  ASSERT_TRUE(run(options));
  const std::string log = test::read_file(options.out / "log.jsonl");
  EXPECT_NE(log.find(R"("step":1,"positions":32)"), std::string::npos);
  EXPECT_NE(log.find(R"("lr":2.500e-03)"), std::string::npos);  // a quarter of the way up
  EXPECT_NE(log.find(R"("lr":1.000e-02)"), std::string::npos);
  // Step 12 is 7/8 of the way from the warm-up's end: 1e-3 + 9e-3 * (1 + cos(7 pi / 8)) / 2.
  EXPECT_NE(log.find(R"("lr":1.343e-03)"), std::string::npos);
}

// Twelve random games have no pattern, so only memory can guess their moves.
TEST(Trainer, ATinyNetLearns64PositionsByHeart) {
  const Data data;
  const auto all = Dataset::load(data.path / "data", Split::Train);
  ASSERT_TRUE(all);
  std::vector<Sample> samples;
  const Permutation order(all->positions(), 1);
  for (std::uint64_t i = 0; samples.size() < 64; ++i) {
    auto sample = all->sample(order(i), nn::PolicyHead::Planes12);
    bool twice = false;  // two games may share an early position
    for (const Sample& other : samples)
      twice |= std::memcmp(&other.planes, &sample->planes, sizeof other.planes) == 0;
    if (!twice) samples.push_back(std::move(*sample));
  }
  const Batch batch = make_batch(samples, nn::PolicyHead::Planes12);
  torch::manual_seed(1);
  nn::ArchConfig arch = tiny();
  arch.channels = 32;
  nn::TorchNetwork net(arch);
  torch::optim::AdamW optimizer(net.parameters(), torch::optim::AdamWOptions(5e-3));
  std::int64_t guessed = 0;
  for (int step = 0; step < 300 && guessed < 64; ++step) {
    const auto [outputs, values] = net.forward(batch.planes);
    const Losses l = losses(outputs, values, batch, 1.0);
    optimizer.zero_grad();
    l.total.backward();
    optimizer.step();
    guessed = hits(l.logits, batch.target, 1);
  }
  EXPECT_GT(guessed, 60);  // 95 %
}

TEST(Heldout, ARandomNetGuessesAboutOneMoveInTwentyAndAgreesWithTheLoss) {
  const Data data;
  const auto all = Dataset::load(data.path / "data", Split::Train);
  ASSERT_TRUE(all);
  torch::manual_seed(1);
  nn::TorchNetwork net(tiny());
  HeldoutOptions options;
  options.batch = 100;
  const auto h = evaluate_heldout(net, *all, options);
  ASSERT_TRUE(h);
  EXPECT_EQ(h->positions, all->positions());
  EXPECT_LT(h->top1, 0.12);
  EXPECT_LT(h->top1, h->top3);
  EXPECT_NEAR(h->nll, std::log(25.0), 0.6);
  // The same by hand.
  std::vector<Sample> samples;
  for (std::uint64_t i = 0; i < all->positions(); ++i)
    samples.push_back(*all->sample(i, nn::PolicyHead::Planes12));
  const torch::NoGradGuard no_gradients;
  net.eval();
  const Batch batch = make_batch(samples, nn::PolicyHead::Planes12);
  const auto [outputs, values] = net.forward(batch.planes);
  const Losses l = losses(outputs, values, batch, 1.0);
  EXPECT_NEAR(h->nll, l.policy.item<double>(), 1e-4);
  EXPECT_NEAR(h->value_mse, l.value.item<double>(), 1e-4);
  EXPECT_TRUE(net.is_training() == false);
}

}  // namespace
}  // namespace tahl::learn
