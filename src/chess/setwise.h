#pragma once

// Every ray of the board at once: Kogge-Stone fills in all eight directions, four to a vector.
// Only for source files compiled with AVX2.

#include <immintrin.h>

#include "chess/attacks.h"
#include "chess/lines.h"
#include "chess/position.h"

namespace tahl {

// One bitboard an axis (chess/lines.h): rank, file, diagonal, antidiagonal.
using Lanes = __m256i;

TAHL_INLINE Lanes all_lanes(Bitboard b) { return _mm256_set1_epi64x(static_cast<long long>(b)); }
TAHL_INLINE Lanes lanes(Bitboard rank, Bitboard file, Bitboard diagonal, Bitboard antidiagonal) {
  return _mm256_setr_epi64x(static_cast<long long>(rank), static_cast<long long>(file),
                            static_cast<long long>(diagonal), static_cast<long long>(antidiagonal));
}

// The union of the lanes, in all of them.
TAHL_INLINE Lanes union_in_all(Lanes x) {
  x = _mm256_or_si256(x, _mm256_permute4x64_epi64(x, _MM_SHUFFLE(1, 0, 3, 2)));
  return _mm256_or_si256(x, _mm256_shuffle_epi32(x, _MM_SHUFFLE(1, 0, 3, 2)));
}
TAHL_INLINE Bitboard union_of(Lanes x) {
  __m128i y = _mm_or_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  y = _mm_or_si128(y, _mm_unpackhi_epi64(y, y));
  return static_cast<Bitboard>(_mm_cvtsi128_si64(y));
}
TAHL_INLINE int population(Lanes x) {
  alignas(32) Bitboard b[4];
  _mm256_store_si256(reinterpret_cast<Lanes*>(b), x);
  return popcount(b[0]) + popcount(b[1]) + popcount(b[2]) + popcount(b[3]);
}

// Four steps: up is east, north, north-east, north-west; down their opposites. `wrap` keeps what a
// step carries over the edge of the board from coming back at the other side.
template <bool kUp>
struct Steps {
  TAHL_INLINE static Lanes wrap() {
    constexpr Bitboard kAll = ~Bitboard{0}, kNotA = ~kFileA, kNotH = ~kFileH;
    return kUp ? lanes(kNotA, kAll, kNotA, kNotH) : lanes(kNotH, kAll, kNotH, kNotA);
  }
  template <int kTimes>
  TAHL_INLINE static Lanes shift(Lanes x) {
    const Lanes by = _mm256_setr_epi64x(1 * kTimes, 8 * kTimes, 9 * kTimes, 7 * kTimes);
    return kUp ? _mm256_sllv_epi64(x, by) : _mm256_srlv_epi64(x, by);
  }
};

// Rays through `empty` squares in four directions: to each square that is reached, the first
// occupied one included. In one direction the rays of two men never meet, since the nearer man
// blocks the farther one's: so the squares of a lane are the moves in it, one each.
template <bool kUp>
class Fill {
 public:
  TAHL_INLINE explicit Fill(Lanes occupied) {
    p1_ = _mm256_andnot_si256(occupied, Steps<kUp>::wrap());
    p2_ = _mm256_and_si256(p1_, Steps<kUp>::template shift<1>(p1_));
    p4_ = _mm256_and_si256(p2_, Steps<kUp>::template shift<2>(p2_));
  }
  TAHL_INLINE Lanes rays(Lanes from) const {
    from = _mm256_or_si256(from, _mm256_and_si256(p1_, Steps<kUp>::template shift<1>(from)));
    from = _mm256_or_si256(from, _mm256_and_si256(p2_, Steps<kUp>::template shift<2>(from)));
    from = _mm256_or_si256(from, _mm256_and_si256(p4_, Steps<kUp>::template shift<4>(from)));
    return step(from);
  }
  TAHL_INLINE static Lanes step(Lanes from) {
    return _mm256_and_si256(Steps<kUp>::template shift<1>(from), Steps<kUp>::wrap());
  }

 private:
  Lanes p1_, p2_, p4_;
};

// Knight moves in four directions: up 6, 10, 15, 17 squares, or down.
template <bool kUp>
TAHL_INLINE Lanes knight_rays(Lanes knights) {
  constexpr Bitboard kNotA = ~kFileA, kNotH = ~kFileH;
  constexpr Bitboard kNotAB = kNotA & ~(kFileA << 1), kNotGH = kNotH & ~(kFileH >> 1);
  const Lanes by = _mm256_setr_epi64x(6, 10, 15, 17);
  return kUp ? _mm256_and_si256(_mm256_sllv_epi64(knights, by), lanes(kNotGH, kNotAB, kNotH, kNotA))
             : _mm256_and_si256(_mm256_srlv_epi64(knights, by),
                                lanes(kNotAB, kNotGH, kNotA, kNotH));
}

}  // namespace tahl
