#pragma once

// The lines of the board and how moves along them are written without a bitscan.

#ifdef __SSSE3__
#include <immintrin.h>
#endif

#include "chess/types.h"

namespace tahl {

enum class Axis : std::uint8_t { Rank, File, Diagonal, Antidiagonal };  // diagonal: as a1-h8

// A square and the up to seven others on a line through it, in ascending order: candidates 0 to 6.
struct alignas(32) Line {
  std::uint16_t moves[8]{};    // Move::bits() from the square to each candidate
  Bitboard mask = 0;           // the candidates
  std::uint64_t titboard = 0;  // where this line's part of TitboardTables begins
};

struct LineTables {
  Line line[64][4];                           // [square][axis]
  alignas(16) std::uint16_t knight[64][8]{};  // Move::bits() of a knight's moves, ascending
  alignas(16) std::uint16_t king[64][8]{};
  // [set of candidates]: the shuffle that brings the moves of a set to the front.
  alignas(16) std::uint8_t compress[256][16]{};
  LineTables();
};
extern const LineTables kLineTables;

#ifdef __BMI2__
// Writes the moves of the candidates in `set`, which may scribble on the eight after `out`, and
// returns the end of what counts.
TAHL_INLINE Move* write_set(const std::uint16_t (&moves)[8], std::size_t set, Move* out) {
  const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(moves));
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kLineTables.compress[set]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(all, order));
  return out + popcount(set);
}

TAHL_INLINE Move* write_on_line(Square from, Axis axis, Bitboard targets, Move* out) {
  const Line& line = kLineTables.line[from][static_cast<int>(axis)];
  return write_set(line.moves, _pext_u64(targets, line.mask), out);
}
#endif

}  // namespace tahl
