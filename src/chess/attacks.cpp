#include "chess/attacks.h"

namespace tahl {
namespace {

Bitboard steps(Square s, std::initializer_list<std::pair<int, int>> offsets) {
  Bitboard result = 0;
  for (const auto& [df, dr] : offsets) {
    const int f = file_of(s) + df, r = rank_of(s) + dr;
    if (f >= 0 && f < 8 && r >= 0 && r < 8) result |= bit(make_square(f, r));
  }
  return result;
}

}  // namespace

AttackTables::AttackTables() {
  for (Square s = 0; s < 64; ++s) {
    pawn[0][s] = steps(s, {{-1, 1}, {1, 1}});
    pawn[1][s] = steps(s, {{-1, -1}, {1, -1}});
    knight[s] = steps(s, {{-2, -1}, {-2, 1}, {-1, -2}, {-1, 2}, {1, -2}, {1, 2}, {2, -1}, {2, 1}});
    king[s] = steps(s, {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}});
    for (int df = -1; df <= 1; ++df) {
      for (int dr = -1; dr <= 1; ++dr) {
        if (df == 0 && dr == 0) continue;
        const Bitboard whole =
            bit(s) | ray(s, df, dr, /*occupied=*/0) | ray(s, -df, -dr, /*occupied=*/0);
        Bitboard passed = 0;
        for (int f = file_of(s) + df, r = rank_of(s) + dr; f >= 0 && f < 8 && r >= 0 && r < 8;
             f += df, r += dr) {
          const Square to = make_square(f, r);
          between[s][to] = passed;
          line[s][to] = whole;
          passed |= bit(to);
        }
      }
    }
  }
}

const AttackTables kAttackTables;

}  // namespace tahl
