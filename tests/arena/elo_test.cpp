#include "arena/elo.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tahl::arena {
namespace {

TEST(Elo, FollowsTheLogisticCurve) {
  EXPECT_NEAR(elo_difference(10. / 11), 400, 1e-9);  // ten to one
  EXPECT_NEAR(elo_difference(.5), 0, 1e-12);
  EXPECT_NEAR(elo_difference(.75), 190.8485, 1e-4);
  EXPECT_NEAR(expected_share(100), .640065, 1e-6);  // FIDE's table: .64
  for (const double elo : {-700., -35., 0., 1., 210.})
    EXPECT_NEAR(elo_difference(expected_share(elo)), elo, 1e-9);
}

// Worked by hand: share .7, variance .16, error 1.96 * sqrt(.16 / 100) = .0784.
TEST(Elo, EstimatesFromGamesThatAreNotPaired) {
  Score score;
  score.wins = 60;
  score.draws = 20;
  score.losses = 20;
  const Estimate e = estimate(score);
  EXPECT_DOUBLE_EQ(e.share, .7);
  EXPECT_NEAR(e.error, .0783986, 1e-6);
  EXPECT_NEAR(*e.elo, 147.1907, 1e-3);
  EXPECT_NEAR(*e.low, 86.225, 1e-2);
  EXPECT_NEAR(*e.high, 218.252, 1e-2);
}

// Ten pairs 1-1 of a win for White each: as single games the spread is the largest there is, as
// pairs none.
TEST(Elo, TakesTheVarianceFromPairs) {
  Score score;
  score.wins = score.losses = 10;
  EXPECT_NEAR(estimate(score).error, 1.959964 * std::sqrt(.25 / 20), 1e-9);
  score.pairs = {0, 0, 10, 0, 0};
  const Estimate e = estimate(score);
  EXPECT_DOUBLE_EQ(e.share, .5);
  EXPECT_EQ(e.error, 0);
  EXPECT_NEAR(*e.elo, 0, 1e-12);
}

// Pair shares 0, .25, .5, .75, 1, once each: mean .5, variance .125, error 1.96 * sqrt(.125 / 5).
TEST(Elo, SpreadsFiveKindsOfPairs) {
  Score score;
  score.wins = 4;
  score.draws = 2;
  score.losses = 4;
  score.pairs = {1, 1, 1, 1, 1};
  EXPECT_NEAR(estimate(score).error, 1.959964 * std::sqrt(.125 / 5), 1e-9);
}

TEST(Elo, HasNoBoundsWhereTheyAreInfinite) {
  Score score;
  score.wins = 4;
  score.pairs = {0, 0, 0, 0, 2};
  const Estimate e = estimate(score);
  EXPECT_EQ(e.share, 1);
  EXPECT_FALSE(e.elo);
  EXPECT_FALSE(e.high);
  // Four of four happen one time in forty at a share of .398 (Clopper and Pearson's tables: 39.76
  // %).
  EXPECT_NEAR(expected_share(*e.low), .3976, 1e-4);
  EXPECT_EQ(estimate(Score()).share, .5);
}

}  // namespace
}  // namespace tahl::arena
