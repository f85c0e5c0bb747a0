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
  static constexpr int kOwn = 0, kEnemy = 36 * 128, kSize = 2 * kEnemy;
  // From kOwn: candidates with no own man up to and on them. From kEnemy: with none of the enemy's
  // before them.
  std::uint8_t sets[kSize]{};
  TitboardTables();

  // Where a line's part begins in either: n candidates, `below` of them below the slider's square.
  static constexpr int offset(int n, int below) { return (n * (n + 1) / 2 + below) * 128; }
};
extern const TitboardTables kTitboardTables;

// The same in ray space, for processors that can gather any 32 bits of a board (AVX-512 BITALG):
// a byte a ray, the nearest square in bit 0. Places beyond the board, and bit 7 of each ray, stand
// for the slider's own square, so that every ray ends at an own man.
struct RayTables {
  alignas(64) std::uint8_t squares[2][64][32]{};  // [bishop, rook][square][place]
  alignas(64) std::uint16_t moves[2][64][32]{};   // Move::bits() to each place
  // [bishop, rook][square][target]: its place, or 63 if it is on no ray.
  alignas(64) std::uint8_t place[2][64][64]{};
  RayTables();
};
extern const RayTables kRayTables;

inline namespace TAHL_ISA {

#ifdef TAHL_AVX512
struct Titboard {
  // Places of ray space: the slider reaches what comes before the first own man and up to the first
  // enemy. So shift enemies a place outwards, and take the places below the lowest man of a byte.
  TAHL_INLINE static std::uint32_t reach(int kind, Square from, Bitboard own, Bitboard enemy) {
    const __m256i places =
        _mm256_load_si256(reinterpret_cast<const __m256i*>(kRayTables.squares[kind][from]));
    const auto gather = [&](Bitboard b) {
      return static_cast<std::uint32_t>(
          _mm256_bitshuffle_epi64_mask(_mm256_set1_epi64x(static_cast<long long>(b)), places));
    };
    const std::uint32_t stops = gather(own) | gather(enemy) << 1;
    return (stops - 0x01010101u) & ~stops;
  }
  TAHL_INLINE static Move* write(int kind, Square from, Bitboard own, Bitboard enemy, Move* out) {
    const std::uint32_t places = reach(kind, from, own, enemy);
    const __m512i moves = _mm512_load_si512(kRayTables.moves[kind][from]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm512_castsi512_si256(_mm512_maskz_compress_epi16(places, moves)));
    return out + popcount(places);
  }
  TAHL_INLINE static Bitboard moves(int kind, Square from, Bitboard own, Bitboard enemy) {
    const __m512i places = _mm512_set1_epi64(reach(kind, from, own, enemy));
    return _mm512_bitshuffle_epi64_mask(places, _mm512_load_si512(kRayTables.place[kind][from]));
  }

  TAHL_INLINE static Bitboard bishop_moves(Square from, Bitboard own, Bitboard enemy) {
    return moves(0, from, own, enemy);
  }
  TAHL_INLINE static Bitboard rook_moves(Square from, Bitboard own, Bitboard enemy) {
    return moves(1, from, own, enemy);
  }
  TAHL_INLINE static int count_bishop(Square from, Bitboard own, Bitboard enemy) {
    return popcount(reach(0, from, own, enemy));
  }
  TAHL_INLINE static int count_rook(Square from, Bitboard own, Bitboard enemy) {
    return popcount(reach(1, from, own, enemy));
  }
  TAHL_INLINE static Move* write_bishop(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return write(0, from, own, enemy, out);
  }
  TAHL_INLINE static Move* write_rook(Square from, Bitboard own, Bitboard enemy, Move* out) {
    return write(1, from, own, enemy, out);
  }
};
#elif defined(__BMI2__)
struct Titboard {
  // Bits over the line's candidates.
  TAHL_INLINE static std::size_t along(Square from, Axis axis, Bitboard own, Bitboard enemy) {
    const Line& line = kLineTables.line[from][static_cast<int>(axis)];
    return static_cast<std::size_t>(
        line.titboard[TitboardTables::kOwn + _pext_u64(own, line.mask)] &
        line.titboard[TitboardTables::kEnemy + _pext_u64(enemy, line.mask)]);
  }
  TAHL_INLINE static Bitboard moves(Square from, Axis axis, Bitboard own, Bitboard enemy) {
    return _pdep_u64(along(from, axis, own, enemy),
                     kLineTables.line[from][static_cast<int>(axis)].mask);
  }
  TAHL_INLINE static Move* write(Square from, Axis axis, Bitboard own, Bitboard enemy, Move* out) {
    return write_set(kLineTables.moves[from][static_cast<int>(axis)], along(from, axis, own, enemy),
                     out);
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

}  // namespace TAHL_ISA
}  // namespace tahl
