#include "chess/sliders_titboard.h"

#include <algorithm>

namespace tahl {
namespace {

// The candidates that the slider reaches before or on the first man of `men`, in either direction;
// without `takes` the man's own square is left out.
std::uint8_t reach(int n, int below, unsigned men, bool takes) {
  unsigned result = 0;
  for (int i = below; i < n; ++i) {  // upwards
    const bool blocked = men >> i & 1;
    if (!blocked || takes) result |= 1u << i;
    if (blocked) break;
  }
  for (int i = below - 1; i >= 0; --i) {
    const bool blocked = men >> i & 1;
    if (!blocked || takes) result |= 1u << i;
    if (blocked) break;
  }
  return static_cast<std::uint8_t>(result);
}

}  // namespace

TitboardTables::TitboardTables() {
  for (int n = 0; n <= 7; ++n) {
    for (int below = 0; below <= n; ++below) {
      for (unsigned men = 0; men < 128; ++men) {
        const int at = offset(n, below) + static_cast<int>(men);
        sets[kOwn + at] = reach(n, below, men, /*takes=*/false);
        sets[kEnemy + at] = reach(n, below, men, /*takes=*/true);
      }
    }
  }
}

[[gnu::init_priority(102)]] const TitboardTables kTitboardTables;

RayTables::RayTables() {
  constexpr int kStep[2][4][2] = {{{1, 1}, {-1, 1}, {1, -1}, {-1, -1}},  // file, rank
                                  {{1, 0}, {-1, 0}, {0, 1}, {0, -1}}};
  for (int kind = 0; kind < 2; ++kind) {
    for (Square s = 0; s < 64; ++s) {
      std::fill_n(place[kind][s], 64, std::uint8_t{63});
      for (int at = 0; at < 32; ++at) {
        const auto [df, dr] = kStep[kind][at / 8];
        const int distance = at % 8 + 1;
        const int f = file_of(s) + df * distance, r = rank_of(s) + dr * distance;
        const bool exists = distance < 8 && f >= 0 && f < 8 && r >= 0 && r < 8;
        const Square to = exists ? make_square(f, r) : s;
        squares[kind][s][at] = to;
        moves[kind][s][at] = Move(s, to).bits();
        if (exists) place[kind][s][to] = static_cast<std::uint8_t>(at);
      }
    }
  }
}

[[gnu::init_priority(102)]] const RayTables kRayTables;

}  // namespace tahl
