#include "arena/elo.h"

#include <cmath>

namespace tahl::arena {
namespace {

std::optional<double> finite_elo(double share) {
  if (share <= 0 || share >= 1) return std::nullopt;
  return elo_difference(share);
}

}  // namespace

double elo_difference(double share) { return 400 * std::log10(share / (1 - share)); }
double expected_share(double elo) { return 1 / (1 + std::pow(10., -elo / 400)); }

Estimate estimate(const Score& score) {
  Estimate e;
  if (score.games() == 0) return e;
  e.share = score.points() / score.games();
  int pairs = 0;
  double spread = 0;  // sum of squared deviations of the shares
  for (std::size_t i = 0; i < score.pairs.size(); ++i) {
    const double deviation = static_cast<double>(i) / 4 - e.share;
    pairs += score.pairs[i];
    spread += score.pairs[i] * deviation * deviation;
  }
  double samples = pairs;
  if (pairs * 2 != score.games()) {
    const auto squared = [&](double points) { return (points - e.share) * (points - e.share); };
    samples = score.games();
    spread = score.wins * squared(1) + score.draws * squared(.5) + score.losses * squared(0);
  }
  constexpr double kNormal95 = 1.959964;
  e.error = kNormal95 * std::sqrt(spread / samples / samples);
  e.elo = finite_elo(e.share);
  e.low = finite_elo(e.share - e.error);
  e.high = finite_elo(e.share + e.error);
  // All won: no spread to go by. The share with which that happens once in forty times (Clopper and
  // Pearson).
  const double least = std::pow(.025, 1. / score.games());
  if (e.share == 1) e.low = finite_elo(least);
  if (e.share == 0) e.high = finite_elo(1 - least);
  return e;
}

}  // namespace tahl::arena
