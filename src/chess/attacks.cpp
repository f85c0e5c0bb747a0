#include "chess/attacks.h"

namespace tahl {
AttackTables::AttackTables() {
  for (Square s = 0; s < 64; ++s) {
    pawn[0][s] = steps(s, {{-1, 1}, {1, 1}});
    pawn[1][s] = steps(s, {{-1, -1}, {1, -1}});
    knight[s] = knight_steps(s);
    king[s] = king_steps(s);
    for (const Axis axis : {Axis::Rank, Axis::File, Axis::Diagonal, Axis::Antidiagonal})
      axes[s][static_cast<int>(axis)] = axis_mask(s, axis);
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

[[gnu::init_priority(101)]] const AttackTables kAttackTables;

}  // namespace tahl
