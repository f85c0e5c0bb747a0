#pragma once

#include "chess/lines.h"

namespace tahl {

// Titboards: where a slider can go along one line, from the own and the enemy men on that line.
// docs/titboards.md has the idea, this form of it, and what else was tried.
//
// A line's squares are each empty, own or enemy: three states, so a ternary number with one digit a
// square says all, and a table over it gives the moves. But a slider goes to a square if no own man
// stands on the way there (the square included) and no enemy man before it. These are two
// conditions, one on each side's men, so the ternary table is the intersection of two binary ones.
struct TitboardTables {
  std::uint8_t own[36 * 128]{};    // candidates with no own man up to and on them
  std::uint8_t enemy[36 * 128]{};  // candidates with no enemy man before them
  TitboardTables();

  // Where a line's part begins in both: n candidates, `below` of them below the slider's square.
  static constexpr int offset(int n, int below) { return (n * (n + 1) / 2 + below) * 128; }
};
extern const TitboardTables kTitboardTables;

#ifdef __BMI2__
struct Titboard {
  // Bits over the line's candidates.
  TAHL_INLINE static std::size_t along(Square from, Axis axis, Bitboard own, Bitboard enemy) {
    const Line& line = kLineTables.line[from][static_cast<int>(axis)];
    const std::size_t own_set = line.titboard + _pext_u64(own, line.mask);
    const std::size_t enemy_set = line.titboard + _pext_u64(enemy, line.mask);
    return static_cast<std::size_t>(kTitboardTables.own[own_set] &
                                    kTitboardTables.enemy[enemy_set]);
  }
  TAHL_INLINE static Bitboard moves(Square from, Axis axis, Bitboard own, Bitboard enemy) {
    return _pdep_u64(along(from, axis, own, enemy),
                     kLineTables.line[from][static_cast<int>(axis)].mask);
  }
  TAHL_INLINE static Move* write(Square from, Axis axis, Bitboard own, Bitboard enemy, Move* out) {
    return write_set(kLineTables.line[from][static_cast<int>(axis)].moves,
                     along(from, axis, own, enemy), out);
  }

  TAHL_INLINE static Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy) {
    return moves(from, Axis::Diagonal, own, enemy) | moves(from, Axis::Antidiagonal, own, enemy);
  }
  TAHL_INLINE static Bitboard rook_moves(Square from, Bitboard own, Bitboard enemy) {
    return moves(from, Axis::Rank, own, enemy) | moves(from, Axis::File, own, enemy);
  }
  TAHL_INLINE static int count_bishop(Square from, Bitboard own, Bitboard enemy) {
    return popcount(along(from, Axis::Diagonal, own, enemy) |
                    along(from, Axis::Antidiagonal, own, enemy) << 8);
  }
  TAHL_INLINE static int count_rook(Square from, Bitboard own, Bitboard enemy) {
    return popcount(along(from, Axis::Rank, own, enemy) | along(from, Axis::File, own, enemy) << 8);
  }
  TAHL_INLINE static Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) {
    out = write(from, Axis::Diagonal, own, enemy, out);
    return write(from, Axis::Antidiagonal, own, enemy, out);
  }
  TAHL_INLINE static Move* write_rook(Square from, Bitboard own, Bitboard enemy, Move* out) {
    out = write(from, Axis::Rank, own, enemy, out);
    return write(from, Axis::File, own, enemy, out);
  }
};
#endif

}  // namespace tahl
