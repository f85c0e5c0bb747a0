#pragma once

// The lines of the board and how moves along them are written without a bitscan.

#ifdef __SSSE3__
#include <immintrin.h>
#endif

#include "chess/types.h"

namespace tahl {

enum class Axis : std::uint8_t { Rank, File, Diagonal, Antidiagonal };  // diagonal: as a1-h8

// A square and the up to seven others on a line through it, in ascending order: candidates 0 to 6.
struct Line {
  Bitboard mask = 0;                       // the candidates
  const std::uint8_t* titboard = nullptr;  // this line's part of TitboardTables::sets
};

struct LineTables {
  // [set of candidates]: the shuffle that brings the moves of a set to the front.
  alignas(64) std::uint8_t compress[256][16]{};
  Line line[64][4];                             // [square][axis]
  alignas(64) std::uint16_t moves[64][4][8]{};  // Move::bits() to each candidate
  alignas(64) std::uint16_t knight[64][8]{};    // and of a knight's moves, ascending
  alignas(64) std::uint16_t king[64][8]{};
  alignas(64) std::uint8_t squares[64]{};  // 0 to 63
  LineTables();
};
extern const LineTables kLineTables;

// Writers may scribble on so many moves after the end that they return.
inline constexpr int kWriterSlack = 16;

inline namespace TAHL_ISA {

#ifdef __BMI2__
// The moves of the candidates in `set`.
TAHL_INLINE Move* write_set(const std::uint16_t (&moves)[8], std::size_t set, Move* out) {
  const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(moves));
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kLineTables.compress[set]));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(all, order));
  return out + popcount(set);
}

TAHL_INLINE Move* write_on_line(Square from, Axis axis, Bitboard targets, Move* out) {
  const int a = static_cast<int>(axis);
  return write_set(kLineTables.moves[from][a], _pext_u64(targets, kLineTables.line[from][a].mask),
                   out);
}
#endif

#ifdef TAHL_AVX512
// The numbers of up to sixteen squares, in ascending order.
TAHL_INLINE __m128i square_numbers(Bitboard squares) {
  const __m512i all = _mm512_load_si512(kLineTables.squares);
  return _mm512_castsi512_si128(_mm512_maskz_compress_epi8(squares, all));
}

// Up to sixteen moves of one man.
TAHL_INLINE Move* write_compressed(Square from, Bitboard targets, Move* out) {
  const __m256i moves = _mm256_or_si256(_mm256_cvtepu8_epi16(square_numbers(targets)),
                                        _mm256_set1_epi16(static_cast<short>(from << 8)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), moves);
  return out + popcount(targets);
}
#endif

}  // namespace TAHL_ISA

}  // namespace tahl
