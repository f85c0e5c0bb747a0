#pragma once

#include <array>
#include <optional>

namespace tahl::arena {

// Results of one player against another, from the first one's side.
struct Score {
  int wins = 0, draws = 0, losses = 0;
  // Games come in pairs, an opening with both colours: how many pairs gave 0, 1/2, 1, 1 1/2 and 2
  // points. The two games of a pair lean on the same opening, so it is the pairs that are
  // independent.
  std::array<int, 5> pairs{};

  int games() const { return wins + draws + losses; }
  double points() const { return wins + draws / 2.; }
};

// The Elo difference that makes `share` of the points the expected result; infinite at 0 and 1.
double elo_difference(double share);
double expected_share(double elo);

struct Estimate {
  double share = .5;  // of the points
  double error = 0;   // half the width of the 95 % interval of `share` (normal approximation)
  // Elo and its 95 % interval; what is infinite is missing.
  std::optional<double> elo, low, high;
};
// The variance comes from the pairs where every game is in one, else from the games.
Estimate estimate(const Score& score);

}  // namespace tahl::arena
