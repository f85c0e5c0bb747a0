#include "nn/evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "chess/fen.h"
#include "nn/net_file.h"
#include "nn/network.h"

namespace tahl::nn {
namespace {

TEST(Softmax, SumsToOne) {
  const std::vector<float> logits = {1, -2, 700, 699.5f, -1e30f};
  for (const float t : {.1f, 1.f, 10.f}) {
    const auto p = softmax(logits, t);
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.), 1, 1e-6) << t;
  }
}

TEST(Softmax, GivesTheKnownValues) {
  const auto p = softmax(std::vector<float>{0, std::log(3.f)});
  EXPECT_NEAR(p[0], .25, 1e-6);
  EXPECT_NEAR(p[1], .75, 1e-6);
  const auto halved = softmax(std::vector<float>{0, std::log(9.f)}, 2);
  EXPECT_NEAR(halved[1], .75, 1e-6);
}

TEST(Softmax, ColdestIsTheFirstLargest) {
  EXPECT_EQ(softmax(std::vector<float>{1, 5, 5, 2}, 0), (std::vector<float>{0, 1, 0, 0}));
}

TEST(Softmax, GivesNothingToMovesWithoutALogit) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(softmax(std::vector<float>{kNone, 3}), (std::vector<float>{0, 1}));
  EXPECT_EQ(softmax(std::vector<float>{kNone, kNone}), (std::vector<float>{.5, .5}));
  EXPECT_TRUE(softmax({}).empty());
}

TEST(Evaluator, UniformKnowsNothing) {
  const auto evaluator = uniform_evaluator();
  const Game game;
  const MoveList legal = legal_moves(game.position());
  const Evaluation e = evaluator->evaluate(game, legal);
  EXPECT_EQ(e.value, 0);
  EXPECT_EQ(e.logits, std::vector<float>(20, e.logits.at(0)));
  EXPECT_EQ(evaluator->clone()->evaluate(game, legal).logits, e.logits);
}

TEST(Evaluator, NamesAFileThatIsNotThere) {
  const auto evaluator = load_evaluator("no/such/net.safetensors");
  ASSERT_FALSE(evaluator);
  EXPECT_NE(evaluator.error().message.find("no/such/net.safetensors"), std::string::npos);
}

// A small net with made-up weights, written as a file.
class SmallNet : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    NetFile net;
    net.arch.channels = 8;
    net.arch.blocks = 1;
    net.arch.policy_head = GetParam();
    std::uint32_t state = 1;
    for (const ParameterSpec& spec : list_parameters(net.arch)) {
      TensorData& tensor = net.tensors[spec.name];
      tensor.shape = spec.shape;
      tensor.data.resize(spec.size());
      for (float& x : tensor.data) {
        state = state * 1664525 + 1013904223;
        x = static_cast<float>(state >> 8) / 0x1p24f - .5f;
        if (spec.kind == ParameterKind::RunningVar) x += 1;
      }
    }
    path_ =
        std::filesystem::path(testing::TempDir()) / fmt::format("small-{}.safetensors", GetParam());
    ASSERT_TRUE(write_net(net, path_));
  }
  std::filesystem::path path_;
};

TEST_P(SmallNet, AgreesOnAPositionAloneAndInABatch) {
  const auto evaluator = load_evaluator(path_.string());
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  std::vector<Game> games(3);
  for (int i = 1; i < 3; ++i)
    for (int k = 0; k < i; ++k)
      games[static_cast<std::size_t>(i)].play(
          legal_moves(games[static_cast<std::size_t>(i)].position())[k]);
  std::vector<MoveList> legal;
  for (const Game& g : games) legal.push_back(legal_moves(g.position()));
  std::vector<EvalRequest> batch;
  for (std::size_t i = 0; i < 3; ++i) batch.push_back({&games[i], &legal[i]});
  const auto together = (*evaluator)->evaluate(batch);
  ASSERT_EQ(together.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const Evaluation alone = (*evaluator)->clone()->evaluate(games[i], legal[i]);
    ASSERT_EQ(alone.logits.size(), static_cast<std::size_t>(legal[i].size()));
    EXPECT_NEAR(alone.value, together[i].value, 1e-5);
    EXPECT_LE(std::abs(alone.value), 1);
    for (std::size_t k = 0; k < alone.logits.size(); ++k)
      EXPECT_NEAR(alone.logits[k], together[i].logits[k], 1e-4);
  }
}

// The encoding puts the mover at the bottom, so a position and its mirror image are one to the net.
TEST_P(SmallNet, DoesNotKnowColours) {
  const auto evaluator = load_evaluator(path_.string());
  ASSERT_TRUE(evaluator) << evaluator.error().message;
  const Game white(*parse_fen("rnbqkbnr/ppp2ppp/8/3Pp3/8/4P3/PPP2PPP/RNBQKBNR w KQkq e6 0 4"));
  const Game black(*parse_fen("rnbqkbnr/ppp2ppp/4p3/8/3pP3/8/PPP2PPP/RNBQKBNR b KQkq e3 0 4"));
  const MoveList moves = legal_moves(white.position());
  MoveList mirrored;
  for (const Move m : moves)
    mirrored.push_back(Move(mirror_rank(m.from()), mirror_rank(m.to()), m.kind()));
  for (const Move m : mirrored) ASSERT_TRUE(is_legal(black.position(), m));
  const Evaluation a = (*evaluator)->evaluate(white, moves);
  const Evaluation b = (*evaluator)->evaluate(black, mirrored);
  EXPECT_EQ(a.value, b.value);
  EXPECT_EQ(a.logits, b.logits);
}

INSTANTIATE_TEST_SUITE_P(Heads, SmallNet, testing::Values("planes12", "fromto4096"));

}  // namespace
}  // namespace tahl::nn
