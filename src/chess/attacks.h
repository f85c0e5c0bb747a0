#pragma once

#include <array>

#include "chess/sliders.h"
#include "chess/types.h"

namespace tahl {

// Tables that do not depend on occupancy, built once at start.
struct AttackTables {
  std::array<std::array<Bitboard, 64>, 2> pawn{};  // [color][square]: where a pawn there captures
  std::array<Bitboard, 64> knight{};
  std::array<Bitboard, 64> king{};
  std::array<std::array<Bitboard, 64>, 64> between{};  // exclusive; empty unless on one line
  std::array<std::array<Bitboard, 64>, 64>
      line{};  // the whole line through both; empty unless on one
  AttackTables();
};
extern const AttackTables kAttackTables;

inline Bitboard pawn_attacks(Color c, Square s) {
  return kAttackTables.pawn[static_cast<std::size_t>(index(c))][s];
}
inline Bitboard knight_attacks(Square s) { return kAttackTables.knight[s]; }
inline Bitboard king_attacks(Square s) { return kAttackTables.king[s]; }
inline Bitboard between(Square a, Square b) { return kAttackTables.between[a][b]; }
inline Bitboard line(Square a, Square b) { return kAttackTables.line[a][b]; }

// Checks, pins and SAN ask for attacks; these go through magic or PEXT in every build.
inline Bitboard bishop_attacks(Square s, Bitboard occupied) {
  return AttackSliders::bishop_attacks(s, occupied);
}
inline Bitboard rook_attacks(Square s, Bitboard occupied) {
  return AttackSliders::rook_attacks(s, occupied);
}
inline Bitboard queen_attacks(Square s, Bitboard occupied) {
  return bishop_attacks(s, occupied) | rook_attacks(s, occupied);
}

// Every square that a set of pawns of colour `c` attacks.
constexpr Bitboard pawns_attack(Color c, Bitboard pawns) {
  return c == Color::White ? (pawns & ~kFileA) << 7 | (pawns & ~kFileH) << 9
                           : (pawns & ~kFileA) >> 9 | (pawns & ~kFileH) >> 7;
}

}  // namespace tahl
