#include "search/time_control.h"

#include <gtest/gtest.h>

#include <limits>

namespace tahl::search {
namespace {

using std::chrono::milliseconds;

Limits clock(std::int64_t own, std::int64_t increment = 0) {
  Limits limits;
  limits.time[0] = milliseconds(own);
  limits.increment[0] = milliseconds(increment);
  return limits;
}

TEST(TimeBudget, HasNoneWithoutClocks) {
  EXPECT_FALSE(time_budget({}, Color::White));
  Limits nodes;
  nodes.nodes = 100;
  EXPECT_FALSE(time_budget(nodes, Color::White));
}

TEST(TimeBudget, MovesAtOnceOnAnEmptyClock) {
  for (const std::int64_t t : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-50},
                               std::int64_t{0}, std::int64_t{1}, std::int64_t{30}}) {
    const auto budget = time_budget(clock(t), Color::White);
    ASSERT_TRUE(budget);
    EXPECT_EQ(budget->target.count(), 0) << t;
    EXPECT_EQ(budget->hard.count(), 0) << t;
  }
}

TEST(TimeBudget, SpendsATwentiethAndMostOfTheIncrement) {
  const auto budget = time_budget(clock(60'030, 1000), Color::White);
  EXPECT_EQ(budget->target.count(), 3000 + 750);
  EXPECT_GT(budget->hard, budget->target);
}

TEST(TimeBudget, NeverPlansBeyondTheClock) {
  for (const std::int64_t t : {40, 100, 1000, 60'000, 10'000'000})
    for (const std::int64_t increment : {0, 100, 5000, 1'000'000})
      for (const int moves : {0, 1, 2, 40, std::numeric_limits<int>::max()}) {
        Limits limits = clock(t, increment);
        if (moves) limits.moves_to_go = moves;
        const auto budget = time_budget(limits, Color::White);
        EXPECT_GE(budget->target.count(), 0);
        EXPECT_LE(budget->target, budget->hard);
        EXPECT_LE(budget->hard, milliseconds(t) - limits.move_overhead);
      }
}

TEST(TimeBudget, UsesNearlyAllBeforeTheControl) {
  Limits limits = clock(10'030);
  limits.moves_to_go = 1;
  EXPECT_EQ(time_budget(limits, Color::White)->target.count(), 10'000);
}

TEST(TimeBudget, TakesNegativeMovesToGoForNone) {
  Limits limits = clock(60'030);
  limits.moves_to_go = -5;
  EXPECT_EQ(time_budget(limits, Color::White)->target.count(), 3000);
}

TEST(TimeBudget, SurvivesTheLargestNumbers) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto budget = time_budget(clock(kMost, kMost), Color::White);
  EXPECT_GT(budget->target.count(), 0);
  EXPECT_LE(budget->target, budget->hard);
  Limits limits;
  limits.movetime = milliseconds(kMost);
  EXPECT_GT(time_budget(limits, Color::White)->hard.count(), 1'000'000'000);
  limits.movetime = milliseconds(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(time_budget(limits, Color::White)->hard.count(), 0);
}

TEST(TimeBudget, GuessesASecondWhenOnlyTheOtherClockIsKnown) {
  EXPECT_EQ(time_budget(clock(60'000), Color::Black)->target.count(), 1000);
}

TEST(TimeBudget, KeepsTheOverheadFromMovetimeButLeavesHalf) {
  Limits limits;
  limits.movetime = milliseconds(1000);
  EXPECT_EQ(time_budget(limits, Color::White)->hard.count(), 970);
  limits.movetime = milliseconds(20);
  EXPECT_EQ(time_budget(limits, Color::White)->hard.count(), 10);
}

TEST(SearchClock, DoesNotRunBeforePonderhit) {
  bool hit = false;
  Limits limits = clock(0);
  limits.ponder = true;
  limits.ponder_hit = [&] { return hit; };
  SearchClock ponder(limits, Color::White);
  EXPECT_FALSE(ponder.past_target());
  EXPECT_TRUE(ponder.must_hold());
  hit = true;
  EXPECT_TRUE(ponder.past_target());
  EXPECT_TRUE(ponder.past_hard());
  EXPECT_FALSE(ponder.must_hold());
}

TEST(SearchClock, HoldsAnInfiniteSearchUntilStopped) {
  Limits limits = clock(0);
  limits.infinite = true;
  SearchClock infinite(limits, Color::White);
  EXPECT_FALSE(infinite.past_hard());
  EXPECT_TRUE(infinite.must_hold());
  std::stop_source stop;
  stop.request_stop();
  infinite.hold(stop.get_token());  // returns
}

}  // namespace
}  // namespace tahl::search
