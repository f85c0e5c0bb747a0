#pragma once

#include "chess/sliders.h"
#include "chess/types.h"

namespace tahl {

// Tables that do not depend on occupancy. Like all tables of this folder they are built before main
// and before other global objects (init_priority 101; the rest 102), so a program's own globals may
// parse positions and make moves.
struct AttackTables {
  Bitboard pawn[2][64]{};  // [color][square]: where a pawn there captures
  Bitboard knight[64]{};
  Bitboard king[64]{};
  Bitboard between[64][64]{};          // exclusive; empty unless on one line
  Bitboard line[64][64]{};             // the whole line through both; empty unless on one
  alignas(32) Bitboard axes[64][4]{};  // [square][Axis]: the lines through a square, without it
  AttackTables();
};
extern const AttackTables kAttackTables;

TAHL_INLINE Bitboard pawn_attacks(Color c, Square s) { return kAttackTables.pawn[index(c)][s]; }
TAHL_INLINE Bitboard knight_attacks(Square s) { return kAttackTables.knight[s]; }
TAHL_INLINE Bitboard king_attacks(Square s) { return kAttackTables.king[s]; }
TAHL_INLINE Bitboard between(Square a, Square b) { return kAttackTables.between[a][b]; }
TAHL_INLINE Bitboard line(Square a, Square b) { return kAttackTables.line[a][b]; }

// Checks, pins and SAN ask for attacks; these go through magic or PEXT in every build.
TAHL_INLINE Bitboard bishop_attacks(Square s, Bitboard occupied) {
  return AttackSliders::bishop_attacks(s, occupied);
}
TAHL_INLINE Bitboard rook_attacks(Square s, Bitboard occupied) {
  return AttackSliders::rook_attacks(s, occupied);
}
TAHL_INLINE Bitboard queen_attacks(Square s, Bitboard occupied) {
  return bishop_attacks(s, occupied) | rook_attacks(s, occupied);
}

// Every square that a set of pawns of colour `c` attacks.
TAHL_INLINE constexpr Bitboard pawns_attack(Color c, Bitboard pawns) {
  return c == Color::White ? (pawns & ~kFileA) << 7 | (pawns & ~kFileH) << 9
                           : (pawns & ~kFileA) >> 9 | (pawns & ~kFileH) >> 7;
}

}  // namespace tahl
