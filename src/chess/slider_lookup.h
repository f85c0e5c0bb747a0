#pragma once

#include <initializer_list>
#include <utility>

#include "chess/lines.h"

namespace tahl {

// The line through a square along an axis, without the square.
Bitboard axis_mask(Square s, Axis axis);

// Squares at these (file, rank) offsets that are on the board.
Bitboard steps(Square s, std::initializer_list<std::pair<int, int>> offsets);
Bitboard knight_steps(Square s);
Bitboard king_steps(Square s);

// Squares from `s` (exclusive) in one direction up to and including the first occupied one: the
// slow definition that every table is built from and tested against.
Bitboard ray(Square s, int file_step, int rank_step, Bitboard occupied);
Bitboard slow_bishop_attacks(Square s, Bitboard occupied);
Bitboard slow_rook_attacks(Square s, Bitboard occupied);
// The same faster, for filling tables: the two lines, each by the difference of its nearest men
// above and below (Chess Programming Wiki, "Obstruction Difference").
Bitboard bishop_attacks_by_lines(Square s, Bitboard occupied);
Bitboard rook_attacks_by_lines(Square s, Bitboard occupied);
// The squares whose occupancy matters: the rays without their last square.
Bitboard bishop_mask(Square s);
Bitboard rook_mask(Square s);
// The entries of a table of bishop and rook attacks that has one for each subset of the masks.
inline constexpr std::size_t kOccupancySubsets = 107'648;

inline namespace TAHL_ISA {

// What magic and PEXT share: attacks by occupancy turned into moves. `Lookup` gives the attacks.
template <class Lookup>
struct AttackLookupSliders {
  TAHL_INLINE static Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy) {
    return Lookup::bishop_attacks(from, own | enemy) & ~own;
  }
  TAHL_INLINE static Bitboard rook_moves(Square from, Bitboard own, Bitboard enemy) {
    return Lookup::rook_attacks(from, own | enemy) & ~own;
  }
  TAHL_INLINE static int count_bishop(Square from, Bitboard own, Bitboard enemy) {
    return popcount(bishop_moves(from, own, enemy));
  }
  TAHL_INLINE static int count_rook(Square from, Bitboard own, Bitboard enemy) {
    return popcount(rook_moves(from, own, enemy));
  }
  TAHL_INLINE static Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return write(from, Axis::Diagonal, Axis::Antidiagonal, bishop_moves(from, own, enemy), out);
  }
  TAHL_INLINE static Move* write_rook(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return write(from, Axis::Rank, Axis::File, rook_moves(from, own, enemy), out);
  }

 private:
  TAHL_INLINE static Move* write(Square from, [[maybe_unused]] Axis a, [[maybe_unused]] Axis b,
                                 Bitboard targets, Move* out) {
#ifdef TAHL_AVX512
    return write_compressed(from, targets, out);
#elif defined(__BMI2__)
    out = write_on_line(from, a, targets, out);
    return write_on_line(from, b, targets, out);
#else
    while (targets) *out++ = Move(from, pop_square(targets));
    return out;
#endif
  }
};

}  // namespace TAHL_ISA
}  // namespace tahl
