#include "chess/attacks.h"

namespace tahl {
AttackTables::AttackTables() {
  for (Square s = 0; s < 64; ++s) {
    pawn[0][s] = steps(s, {{-1, 1}, {1, 1}});
    pawn[1][s] = steps(s, {{-1, -1}, {1, -1}});
    knight[s] = knight_steps(s);
    king[s] = king_steps(s);
    constexpr int kStep[4][2] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};  // file and rank, by Axis
    for (int axis = 0; axis < 4; ++axis) {
      const auto [df, dr] = kStep[axis];
      axes[s][axis] = ray(s, df, dr, /*occupied=*/0) | ray(s, -df, -dr, /*occupied=*/0);
    }
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
