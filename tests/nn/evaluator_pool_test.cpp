#include "nn/evaluator_pool.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

TEST(EvaluatorPool, ReadsANetOnce) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "pool-net.safetensors";
  ASSERT_TRUE(write_net(testing::random_net({.channels = 8, .blocks = 1}, 5), path));
  std::unique_ptr<Evaluator> first, second, cached;
  {
    EvaluatorPool pool;
    first = *pool.take(path.string(), {});
    std::filesystem::remove(path);
    second = *pool.take(path.string(), {});
    cached = *pool.take(path.string(), {}, 1);
    // Another way to compute is another net.
    EXPECT_FALSE(pool.take(path.string(), {.threads = 2}));
  }
  const Game game;
  const MoveList legal = legal_moves(game.position());
  const Evaluation e = first->evaluate(game, legal);
  EXPECT_EQ(second->evaluate(game, legal).logits, e.logits);
  EXPECT_EQ(cached->evaluate(game, legal).logits, e.logits);
  EXPECT_EQ(cached->evaluate(game, legal).value, e.value);
}

TEST(EvaluatorPool, SaysWhatIsWrongEachTime) {
  EvaluatorPool pool;
  for (int i = 0; i < 2; ++i) {
    const auto evaluator = pool.take("no/such/net.safetensors", {}, 1);
    ASSERT_FALSE(evaluator);
    EXPECT_NE(evaluator.error().message.find("no/such/net.safetensors"), std::string::npos);
  }
  EXPECT_TRUE(pool.take("uniform", {}));
}

TEST(EvaluatorPool, ServesManyThreads) {
  EvaluatorPool pool;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 20; ++i) {
        const Game game;
        const MoveList legal = legal_moves(game.position());
        const auto evaluator = pool.take("uniform", {.threads = 1 + i % 2}, t % 2);
        EXPECT_EQ((*evaluator)->evaluate(game, legal).logits.size(), 20u);
      }
    });
  }
}

}  // namespace
}  // namespace tahl::nn
