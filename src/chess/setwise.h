#pragma once

// Every ray of the board at once: Kogge-Stone fills in all eight directions (Chess Programming
// Wiki, "Kogge-Stone Algorithm"; vectors of four directions after Gerd Isenberg's "DirGolem").
// For source files compiled with AVX2 or AVX-512, each with its own vectors and the same words:
//
//   Lanes   a set of squares for each axis: rank, file, diagonal, antidiagonal (chess/lines.h)
//   Rays8   a set for each direction: up the four axes (east, north, north-east, north-west) and
//           down them
//
// Everything here is branch-free.

#include <immintrin.h>

#include "chess/attacks.h"

namespace tahl {
inline namespace TAHL_ISA {

inline constexpr Bitboard kNotA = ~kFileA, kNotH = ~kFileH;
inline constexpr Bitboard kNotAB = kNotA & ~(kFileA << 1), kNotGH = kNotH & ~(kFileH >> 1);

struct Lanes {
  __m256i v;
};
TAHL_INLINE Lanes all_lanes(Bitboard b) { return {_mm256_set1_epi64x(static_cast<long long>(b))}; }
// From memory: one instruction, where a copy by way of a general register costs two.
TAHL_INLINE Lanes all_lanes_at(const Bitboard& b) {
  return {_mm256_castpd_si256(_mm256_broadcast_sd(reinterpret_cast<const double*>(&b)))};
}
TAHL_INLINE Lanes operator&(Lanes a, Lanes b) { return {_mm256_and_si256(a.v, b.v)}; }
TAHL_INLINE Lanes operator|(Lanes a, Lanes b) { return {_mm256_or_si256(a.v, b.v)}; }
TAHL_INLINE Lanes and_not(Lanes a, Lanes b) { return {_mm256_andnot_si256(b.v, a.v)}; }  // a & ~b
TAHL_INLINE bool is_empty(Lanes x) { return _mm256_testz_si256(x.v, x.v) != 0; }
TAHL_INLINE Bitboard union_of(Lanes x) {
  __m128i y = _mm_or_si128(_mm256_castsi256_si128(x.v), _mm256_extracti128_si256(x.v, 1));
  y = _mm_or_si128(y, _mm_unpackhi_epi64(y, y));
  return static_cast<Bitboard>(_mm_cvtsi128_si64(y));
}
// From a Position's planes (code bits 0, 1, 2, black): bit 2, which straight sliders have, on rank
// and file, and bit 1, which diagonal ones have, on the diagonals.
TAHL_INLINE Lanes sliders_by_axis(const Bitboard (&planes)[4]) {
  const __m256i all = _mm256_load_si256(reinterpret_cast<const __m256i*>(planes));
  return {_mm256_permute4x64_epi64(all, _MM_SHUFFLE(1, 1, 2, 2))};
}

#ifdef TAHL_AVX512

struct Rays8 {
  __m512i v;  // up in the lower half, down in the upper
};
TAHL_INLINE __m512i eight(Lanes x) { return _mm512_broadcast_i64x4(x.v); }
TAHL_INLINE __m512i reversed(__m512i x) {  // each direction's set in its opposite's place
  return _mm512_shuffle_i64x2(x, x, _MM_SHUFFLE(1, 0, 3, 2));
}
TAHL_INLINE Rays8 operator|(Rays8 a, Rays8 b) { return {_mm512_or_si512(a.v, b.v)}; }
TAHL_INLINE Rays8 operator&(Rays8 a, Lanes b) { return {_mm512_and_si512(a.v, eight(b))}; }
TAHL_INLINE Rays8 and_not(Rays8 a, Lanes b) { return {_mm512_andnot_si512(eight(b), a.v)}; }
TAHL_INLINE Lanes any(Rays8 x) {
  return {_mm256_or_si256(_mm512_castsi512_si256(x.v), _mm512_extracti64x4_epi64(x.v, 1))};
}
// Where a ray of `a` meets one of `b` that comes the other way, by axis.
TAHL_INLINE Lanes meeting(Rays8 a, Rays8 b) { return any({_mm512_and_si512(a.v, reversed(b.v))}); }
// The rays of `b` whose opposite in `a` is not empty.
TAHL_INLINE Lanes where_opposite(Rays8 a, Rays8 b) {
  const __m512i other = reversed(a.v);
  return any({_mm512_maskz_mov_epi64(_mm512_test_epi64_mask(other, other), b.v)});
}
TAHL_INLINE int population(Rays8 x) {
  return static_cast<int>(_mm512_reduce_add_epi64(_mm512_popcnt_epi64(x.v)));
}

template <int kTimes>
TAHL_INLINE __m512i shift8(__m512i x) {
  constexpr int k = kTimes;
  const __m512i by =
      _mm512_setr_epi64(1 * k, 8 * k, 9 * k, 7 * k, 64 - 1 * k, 64 - 8 * k, 64 - 9 * k, 64 - 7 * k);
  return _mm512_rolv_epi64(x, by);
}
// What a step may reach: it must not wrap around an edge.
TAHL_INLINE __m512i on_board8() {
  constexpr Bitboard kNot1 = ~kRank1, kNot8 = ~kRank8;
  return _mm512_setr_epi64(static_cast<long long>(kNotA), static_cast<long long>(kNot1),
                           static_cast<long long>(kNotA & kNot1),
                           static_cast<long long>(kNotH & kNot1), static_cast<long long>(kNotH),
                           static_cast<long long>(kNot8), static_cast<long long>(kNotH & kNot8),
                           static_cast<long long>(kNotA & kNot8));
}
TAHL_INLINE Rays8 step(Rays8 x) { return {_mm512_and_si512(shift8<1>(x.v), on_board8())}; }

// Rays through squares that are not `occupied`, to each square reached, the first occupied one
// included.
class Fill {
 public:
  TAHL_INLINE explicit Fill(Lanes occupied) {
    p1_ = _mm512_andnot_si512(eight(occupied), on_board8());
    p2_ = _mm512_and_si512(p1_, shift8<1>(p1_));
    p4_ = _mm512_and_si512(p2_, shift8<2>(p2_));
  }
  TAHL_INLINE Rays8 rays(Lanes from) const {
    __m512i x = eight(from);
    x = _mm512_or_si512(x, _mm512_and_si512(p1_, shift8<1>(x)));
    x = _mm512_or_si512(x, _mm512_and_si512(p2_, shift8<2>(x)));
    x = _mm512_or_si512(x, _mm512_and_si512(p4_, shift8<4>(x)));
    return step({x});
  }

 private:
  __m512i p1_, p2_, p4_;
};

TAHL_INLINE Rays8 knight_steps8(Lanes knights) {
  constexpr Bitboard kNot1 = ~kRank1, kNot8 = ~kRank8;
  constexpr Bitboard kNot12 = kNot1 & ~(kRank1 << 8), kNot78 = kNot8 & ~(kRank8 >> 8);
  const __m512i by = _mm512_setr_epi64(6, 10, 15, 17, 64 - 6, 64 - 10, 64 - 15, 64 - 17);
  const __m512i on_board = _mm512_setr_epi64(
      static_cast<long long>(kNotGH & kNot1), static_cast<long long>(kNotAB & kNot1),
      static_cast<long long>(kNotH & kNot12), static_cast<long long>(kNotA & kNot12),
      static_cast<long long>(kNotAB & kNot8), static_cast<long long>(kNotGH & kNot8),
      static_cast<long long>(kNotA & kNot78), static_cast<long long>(kNotH & kNot78));
  return {_mm512_and_si512(_mm512_rolv_epi64(eight(knights), by), on_board)};
}

#else

struct Rays8 {
  Lanes up, down;
};
TAHL_INLINE Rays8 operator|(Rays8 a, Rays8 b) { return {a.up | b.up, a.down | b.down}; }
TAHL_INLINE Rays8 operator&(Rays8 a, Lanes b) { return {a.up & b, a.down & b}; }
TAHL_INLINE Rays8 and_not(Rays8 a, Lanes b) { return {and_not(a.up, b), and_not(a.down, b)}; }
TAHL_INLINE Lanes any(Rays8 x) { return x.up | x.down; }
// Where a ray of `a` meets one of `b` that comes the other way, by axis.
TAHL_INLINE Lanes meeting(Rays8 a, Rays8 b) { return (a.up & b.down) | (a.down & b.up); }
// The rays of `b` whose opposite in `a` is not empty.
TAHL_INLINE Lanes where_opposite(Rays8 a, Rays8 b) {
  const __m256i none = _mm256_setzero_si256();
  return Lanes{_mm256_andnot_si256(_mm256_cmpeq_epi64(a.down.v, none), b.up.v)} |
         Lanes{_mm256_andnot_si256(_mm256_cmpeq_epi64(a.up.v, none), b.down.v)};
}
TAHL_INLINE int population(Lanes x) {
  alignas(32) Bitboard b[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(b), x.v);
  return popcount(b[0]) + popcount(b[1]) + popcount(b[2]) + popcount(b[3]);
}
TAHL_INLINE int population(Rays8 x) { return population(x.up) + population(x.down); }

template <bool kUp, int kTimes>
TAHL_INLINE Lanes shift4(Lanes x) {
  const __m256i by = _mm256_setr_epi64x(1 * kTimes, 8 * kTimes, 9 * kTimes, 7 * kTimes);
  return {kUp ? _mm256_sllv_epi64(x.v, by) : _mm256_srlv_epi64(x.v, by)};
}
TAHL_INLINE Lanes lanes(Bitboard rank, Bitboard file, Bitboard diagonal, Bitboard antidiagonal) {
  return {_mm256_setr_epi64x(static_cast<long long>(rank), static_cast<long long>(file),
                             static_cast<long long>(diagonal),
                             static_cast<long long>(antidiagonal))};
}
// What a step may reach: it must not wrap around an edge.
template <bool kUp>
TAHL_INLINE Lanes on_board() {
  constexpr Bitboard kAll = ~Bitboard{0};
  return kUp ? lanes(kNotA, kAll, kNotA, kNotH) : lanes(kNotH, kAll, kNotH, kNotA);
}
template <bool kUp>
TAHL_INLINE Lanes step(Lanes x) {
  return shift4<kUp, 1>(x) & on_board<kUp>();
}
TAHL_INLINE Rays8 step(Rays8 x) { return {step<true>(x.up), step<false>(x.down)}; }

template <bool kUp>
class Fill4 {
 public:
  TAHL_INLINE explicit Fill4(Lanes occupied) {
    p1_ = and_not(on_board<kUp>(), occupied);
    p2_ = p1_ & shift4<kUp, 1>(p1_);
    p4_ = p2_ & shift4<kUp, 2>(p2_);
  }
  TAHL_INLINE Lanes rays(Lanes x) const {
    x = x | (p1_ & shift4<kUp, 1>(x));
    x = x | (p2_ & shift4<kUp, 2>(x));
    x = x | (p4_ & shift4<kUp, 4>(x));
    return step<kUp>(x);
  }

 private:
  Lanes p1_, p2_, p4_;
};

// Rays through squares that are not `occupied`, to each square reached, the first occupied one
// included.
class Fill {
 public:
  TAHL_INLINE explicit Fill(Lanes occupied) : up_(occupied), down_(occupied) {}
  TAHL_INLINE Rays8 rays(Lanes from) const { return {up_.rays(from), down_.rays(from)}; }

 private:
  Fill4<true> up_;
  Fill4<false> down_;
};

// Knight moves in the eight directions: up 6, 10, 15, 17 squares, and down.
TAHL_INLINE Rays8 knight_steps8(Lanes knights) {
  const __m256i by = _mm256_setr_epi64x(6, 10, 15, 17);
  return {Lanes{_mm256_sllv_epi64(knights.v, by)} & lanes(kNotGH, kNotAB, kNotH, kNotA),
          Lanes{_mm256_srlv_epi64(knights.v, by)} & lanes(kNotAB, kNotGH, kNotA, kNotH)};
}

#endif

}  // namespace TAHL_ISA
}  // namespace tahl
