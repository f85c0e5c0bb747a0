#pragma once

#include <vector>

#include "chess/types.h"

namespace tahl {

// Squares from `s` (exclusive) in one direction up to and including the first occupied one: the
// slow definition that every table is built from and tested against.
Bitboard ray(Square s, int file_step, int rank_step, Bitboard occupied);
Bitboard slow_bishop_attacks(Square s, Bitboard occupied);
Bitboard slow_rook_attacks(Square s, Bitboard occupied);
// The squares whose occupancy matters: the rays without their last square.
Bitboard bishop_mask(Square s);
Bitboard rook_mask(Square s);

// What magic and PEXT share: attacks by occupancy turned into moves. `Lookup` gives the attacks.
template <class Lookup>
struct AttackLookupSliders {
  static Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy) {
    return Lookup::bishop_attacks(from, own | enemy) & ~own;
  }
  static Bitboard rook_moves(Square from, Bitboard own, Bitboard enemy) {
    return Lookup::rook_attacks(from, own | enemy) & ~own;
  }
  static void append_bishop(Square from, Bitboard own, Bitboard enemy, Bitboard mask,
                            MoveList& out) {
    append(from, bishop_moves(from, own, enemy) & mask, out);
  }
  static void append_rook(Square from, Bitboard own, Bitboard enemy, Bitboard mask, MoveList& out) {
    append(from, rook_moves(from, own, enemy) & mask, out);
  }

 private:
  static void append(Square from, Bitboard targets, MoveList& out) {
    while (targets) out.push_back(Move(from, pop_square(targets)));
  }
};

}  // namespace tahl
