#include "nn/evaluator_batching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace tahl::nn {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Seen {
  std::atomic<int> passes = 0, positions = 0, largest = 0, at_once = 0, most_at_once = 0;
};

// Answers with the number of plies of each game; slow as a net is, and one thread at a time.
class PlyEvaluator : public Evaluator {
 public:
  PlyEvaluator(std::shared_ptr<Seen> seen, microseconds time)
      : seen_(std::move(seen)), time_(time) {}
  std::vector<Evaluation> evaluate(std::span<const EvalRequest> batch) override {
    EXPECT_FALSE(busy_.exchange(true)) << "two threads in one evaluator";
    const int now = ++seen_->at_once;
    seen_->most_at_once = std::max(seen_->most_at_once.load(), now);
    ++seen_->passes;
    seen_->positions += static_cast<int>(batch.size());
    seen_->largest = std::max(seen_->largest.load(), static_cast<int>(batch.size()));
    std::this_thread::sleep_for(time_);
    std::vector<Evaluation> result;
    for (const EvalRequest& request : batch) {
      Evaluation& e = result.emplace_back();
      e.value = static_cast<float>(request.game->ply());
      e.logits.resize(static_cast<std::size_t>(request.legal->size()), e.value);
      if (request.game->ply() == 7) fails_ = true;
    }
    --seen_->at_once;
    busy_ = false;
    if (std::exchange(fails_, false)) throw std::runtime_error("seven plies");
    return result;
  }
  std::unique_ptr<Evaluator> clone() const override {
    return std::make_unique<PlyEvaluator>(seen_, time_);
  }
  std::string name() const override { return "plies"; }
  int positions_read() const override { return 3; }

 private:
  std::shared_ptr<Seen> seen_;
  microseconds time_;
  std::atomic<bool> busy_ = false;
  bool fails_ = false;
};

Game game_of(int plies) {
  Game game;
  for (int i = 0; i < plies; ++i) game.play(legal_moves(game.position())[0]);
  return game;
}

// Each thread asks `times` times for one position, with a clone of its own.
void ask(const Evaluator& evaluator, int threads, int times) {
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([=, mine = std::shared_ptr<Evaluator>(evaluator.clone())] {
      for (int i = 0; i < times; ++i) {
        const int plies = 10 + (t * 3 + i) % 20;
        const Game game = game_of(plies);
        const MoveList legal = legal_moves(game.position());
        const EvalRequest requests[] = {{&game, &legal}, {&game, &legal}};
        const auto e =
            mine->evaluate(std::span(requests).first(1 + static_cast<std::size_t>(t % 2)));
        ASSERT_EQ(e.size(), 1 + static_cast<std::size_t>(t % 2));
        for (const Evaluation& one : e) {
          ASSERT_EQ(one.value, static_cast<float>(plies));
          ASSERT_EQ(one.logits.size(), static_cast<std::size_t>(legal.size()));
        }
      }
    });
  }
}

TEST(Batching, GivesEachThreadItsOwnAnswers) {
  for (const int passes : {1, 2}) {
    const auto seen = std::make_shared<Seen>();
    const auto batching = with_batching(std::make_unique<PlyEvaluator>(seen, microseconds(200)),
                                        {.max_batch = 5, .passes = passes});
    ask(*batching, 6, 100);
    EXPECT_EQ(seen->positions, 900);
    EXPECT_LE(seen->largest, 5);
    EXPECT_LE(seen->most_at_once, passes);
  }
}

TEST(Batching, GathersThreadsThatAskAtTheSameTime) {
  const auto seen = std::make_shared<Seen>();
  const auto batching = with_batching(std::make_unique<PlyEvaluator>(seen, milliseconds(1)),
                                      {.wait = milliseconds(50)});
  ask(*batching, 4, 50);
  EXPECT_EQ(seen->positions, 300);
  EXPECT_LT(seen->passes, 150);  // 50 if all went well, 200 without
}

TEST(Batching, WhoIsAloneDoesNotWait) {
  const auto seen = std::make_shared<Seen>();
  const auto batching = with_batching(std::make_unique<PlyEvaluator>(seen, microseconds(0)),
                                      {.wait = std::chrono::hours(1)});
  const auto idle = batching->clone();  // never asks
  ask(*batching, 1, 20);
  EXPECT_EQ(seen->passes, 20);
}

TEST(Batching, DoesNotWaitLongForThoseWhoStopAsking) {
  const auto seen = std::make_shared<Seen>();
  const auto batching = with_batching(std::make_unique<PlyEvaluator>(seen, microseconds(100)),
                                      {.wait = milliseconds(5)});
  const auto other = batching->clone();
  const Game game;
  const MoveList legal = legal_moves(game.position());
  {
    const std::jthread thread([&] { static_cast<Evaluator&>(*other).evaluate(game, legal); });
    batching->evaluate(game, legal);
  }
  for (int i = 0; i < 100; ++i) batching->evaluate(game, legal);  // `other` is there, and silent
  EXPECT_EQ(seen->positions, 102);
}

TEST(Batching, TakesARequestLargerThanAPass) {
  const auto seen = std::make_shared<Seen>();
  const auto batching =
      with_batching(std::make_unique<PlyEvaluator>(seen, microseconds(0)), {.max_batch = 2});
  const Game game = game_of(4);
  const MoveList legal = legal_moves(game.position());
  const std::vector<EvalRequest> batch(9, EvalRequest{&game, &legal});
  EXPECT_EQ(batching->evaluate(batch).size(), 9u);
  EXPECT_TRUE(batching->evaluate(std::span<const EvalRequest>()).empty());
  EXPECT_EQ(seen->passes, 1);
}

TEST(Batching, HandsOnExceptionsAndGoesOn) {
  const auto batching =
      with_batching(std::make_unique<PlyEvaluator>(std::make_shared<Seen>(), microseconds(0)));
  const Game bad = game_of(7), good = game_of(8);
  EXPECT_THROW(batching->evaluate(bad, legal_moves(bad.position())), std::runtime_error);
  EXPECT_EQ(batching->evaluate(good, legal_moves(good.position())).value, 8);
  EXPECT_EQ(batching->positions_read(), 3);
  EXPECT_EQ(batching->name(), "plies");
}

}  // namespace
}  // namespace tahl::nn
