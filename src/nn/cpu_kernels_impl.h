// The kernels, included by cpu_kernels_*.cpp after they have chosen the instruction set and defined
//   TAHL_LANES    floats of a vector
//   TAHL_SQUARES  squares of a tile of the direct convolution, and rows of Winograd's products:
//   with
//                 two vectors of channels each they fill the registers
//   TAHL_LEVEL    a namespace
//   TAHL_BF16     1: boards and factors are bfloat16
//   TAHL_INT8     1: factors of 3x3 convolutions are bytes, boards floats
//
// Nothing of the standard library may be used here: the linker keeps one copy of an inline function
// for the whole program, and it must not be one that needs AVX-512.
//
// All factors are handled as 32-bit words: one float, two bfloat16 or four bytes of neighbouring
// input channels. dot() multiplies the word of one square with a vector of such words, one for each
// output channel, and adds the products to a 32-bit sum a channel.

namespace tahl::nn::TAHL_LEVEL {
namespace {

constexpr int kLanes = TAHL_LANES;
constexpr int kSquares = TAHL_SQUARES;
constexpr int kBlock = 2 * kLanes;

typedef float Vec __attribute__((vector_size(TAHL_LANES * 4)));
typedef int IntVec __attribute__((vector_size(TAHL_LANES * 4)));
// The same without a claim about alignment.
typedef float LooseVec __attribute__((vector_size(TAHL_LANES * 4), aligned(4), may_alias));
typedef int LooseIntVec __attribute__((vector_size(TAHL_LANES * 4), aligned(4), may_alias));
typedef int Word __attribute__((may_alias));
typedef float LooseFloat __attribute__((may_alias));

#define TAHL_INLINE inline __attribute__((always_inline))
#define TAHL_LOAD(pointer) (*reinterpret_cast<const LooseVec*>(pointer))
#define TAHL_STORE(pointer, vec) (*reinterpret_cast<LooseVec*>(pointer) = (vec))

// ---- Cells of boards ----

#if TAHL_BF16
typedef unsigned short Cell __attribute__((may_alias));
TAHL_INLINE void load_cells(const Cell* p, Vec& x) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p));
  x = reinterpret_cast<Vec>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
TAHL_INLINE void store_cells(Cell* p, const Vec& x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p),
                      reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(x))));
}
// Two vectors of neighbouring channels: one store of a whole cache line.
TAHL_INLINE void store_cells(Cell* p, const Vec& x, const Vec& y) {
  _mm512_storeu_si512(p, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
                             reinterpret_cast<__m512>(y), reinterpret_cast<__m512>(x))));
}
#else
typedef LooseFloat Cell;
TAHL_INLINE void load_cells(const Cell* p, Vec& x) { x = TAHL_LOAD(p); }
TAHL_INLINE void store_cells(Cell* p, const Vec& x) { TAHL_STORE(p, x); }
TAHL_INLINE void store_cells(Cell* p, const Vec& x, const Vec& y) {
  TAHL_STORE(p, x);
  TAHL_STORE(p + kLanes, y);
}
#endif

// ---- Products ----

#if TAHL_INT8
constexpr int kGroup = 4;  // factors of a word
typedef IntVec Sum;
typedef IntVec Factors;
TAHL_INLINE void broadcast(const Word* p, Factors& x) {
  x = reinterpret_cast<IntVec>(_mm512_set1_epi32(*p));
}
TAHL_INLINE void dot(Sum& sum, const Factors& x, const Factors& w) {
  sum = reinterpret_cast<Sum>(_mm512_dpbusd_epi32(
      reinterpret_cast<__m512i>(sum), reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(w)));
}
#elif TAHL_BF16
constexpr int kGroup = 2;
typedef Vec Sum;
typedef IntVec Factors;
TAHL_INLINE void broadcast(const Word* p, Factors& x) {
  x = reinterpret_cast<IntVec>(_mm512_set1_epi32(*p));
}
TAHL_INLINE void dot(Sum& sum, const Factors& x, const Factors& w) {
  sum = reinterpret_cast<Sum>(_mm512_dpbf16_ps(
      reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w)));
}
#else
constexpr int kGroup = 1;
typedef Vec Sum;
typedef Vec Factors;
TAHL_INLINE void broadcast(const Word* p, Factors& x) {
  const Vec zero = {};
  x = zero + *reinterpret_cast<const LooseFloat*>(p);
}
TAHL_INLINE void dot(Sum& sum, const Factors& x, const Factors& w) { sum += x * w; }
#endif
TAHL_INLINE void load_factors(const Word* p, Factors& w) {
  w = reinterpret_cast<Factors>(*reinterpret_cast<const LooseIntVec*>(p));
}

constexpr int words(int channels) { return (channels + kGroup - 1) / kGroup; }
constexpr int padded_words(int channels) { return pad(channels) / kGroup; }

// ---- Activations ----

// exp(y) = 2^n e^r with n = round(y / ln 2); e^r by its series to r^6, |r| < 0.35, relative error
// below 1e-6. For |y| > 87 as for 87.
TAHL_INLINE void exp_in_place(Vec& y) {
  const Vec zero = {};
  const Vec limit = zero + 87.0f;
  y = y > limit ? limit : y;
  y = y < -limit ? -limit : y;
  const Vec scaled = y * 1.44269504f;
  const Vec half = scaled < zero ? zero - 0.5f : zero + 0.5f;
  const IntVec n = __builtin_convertvector(scaled + half, IntVec);
  const Vec whole = __builtin_convertvector(n, Vec);
  const Vec r = y - whole * 0.693359375f + whole * 2.12194440e-4f;  // ln 2 in two parts
  Vec e = zero + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  y = e * reinterpret_cast<Vec>((n + 127) << 23);
}

TAHL_INLINE void sigmoid_in_place(Vec& x) {
  x = -x;
  exp_in_place(x);
  x = 1.0f / (1.0f + x);
}

TAHL_INLINE void relu_in_place(Vec& x) {
  const Vec zero = {};
  x = x > zero ? x : zero;
}

TAHL_INLINE void activate_in_place(Vec& x, Activation activation) {
  if (activation == Activation::Relu) relu_in_place(x);
  if (activation == Activation::Sigmoid) sigmoid_in_place(x);
  if (activation == Activation::Tanh) {  // tanh(x) = 2 sigmoid(2x) - 1
    x = 2.0f * x;
    sigmoid_in_place(x);
    x = 2.0f * x - 1.0f;
  }
  const Vec zero = {};
  if (activation == Activation::Mish) {
    // x tanh(log(1 + e)) = x n / (n + 2) with e = exp(x), n = e (e + 2); for x > 20 that is x.
    Vec e = x > zero + 20.0f ? zero + 20.0f : x;
    exp_in_place(e);
    const Vec n = e * (e + 2.0f);
    x *= n / (n + 2.0f);
  }
  if (activation == Activation::Selu) {
    Vec e = x;
    exp_in_place(e);
    x = kSeluScale * (x > zero ? x : kSeluAlpha * (e - 1.0f));
  }
}

[[maybe_unused]] void activate_vector(const float* in, float* out, int n, Activation activation) {
  for (int i = 0; i < n; i += kLanes) {
    Vec x = TAHL_LOAD(in + i);
    activate_in_place(x, activation);
    TAHL_STORE(out + i, x);
  }
}

[[maybe_unused]] void activate(const CellArgs& args, Activation activation) {
  const Cell* in = static_cast<const Cell*>(args.x);
  Cell* out = static_cast<Cell*>(args.out);
  for (int square = 0; square < 64 * args.positions; ++square) {
    for (int c = args.range.begin; c < args.range.end; c += kLanes) {
      const long at = static_cast<long>(square) * args.stride + c;
      Vec x;
      load_cells(in + at, x);
      activate_in_place(x, activation);
      store_cells(out + at, x);
    }
  }
}

// Activations that would not fit beside a tile in the registers.
TAHL_INLINE void finish(const ConvArgs& args) {
  if (args.activation == Activation::None || args.activation == Activation::Relu) return;
  activate(
      {args.positions, pad(args.out_channels), args.range, args.out, nullptr, nullptr, args.out},
      args.activation);
}

// ---- Convolutions as they are written ----
//
// A tile of kSquares squares of one row times two vectors of output channels stays in registers
// while all inputs pass; taps beyond the edge are skipped when compiling (files) or by the loop's
// bounds (ranks), so nothing is padded.

struct Finish {  // what comes after the sums of two vectors of channels
  const float* bias;
  const float* scale;  // Int8
  const Cell* residual;
  Cell* out;
  bool relu;
};

TAHL_INLINE void to_float(const Sum& sum, const float* scale, Vec& x) {
#if TAHL_INT8
  x = __builtin_convertvector(sum, Vec) * TAHL_LOAD(scale);
#else
  (void)scale;
  x = sum;
#endif
}

template <int kRows>
TAHL_INLINE void end_tile(Sum (&sum)[kRows][2], const Finish& f, long at, int stride) {
#pragma GCC unroll 8
  for (int s = 0; s < kRows; ++s, at += stride) {
    Vec x[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      to_float(sum[s][j], f.scale + j * kLanes, x[j]);
      x[j] += TAHL_LOAD(f.bias + j * kLanes);
      if (f.residual != nullptr) {
        Vec r;
        load_cells(f.residual + at + j * kLanes, r);
        x[j] += r;
      }
      if (f.relu) relu_in_place(x[j]);
    }
    store_cells(f.out + at, x[0], x[1]);
  }
}

TAHL_INLINE Finish finish_of(const ConvArgs& args, int channel) {
  const Cell* residual = static_cast<const Cell*>(args.residual);
  return {args.bias + channel, args.scale + (TAHL_INT8 ? channel : 0),
          residual == nullptr ? nullptr : residual + channel,
          static_cast<Cell*>(args.out) + channel, args.activation == Activation::Relu};
}

// One input row's part in the tile that begins on file kFirst: `row` is that rank's a-file,
// `weights` [word][3][kBlock].
template <int kFirst>
TAHL_INLINE void add_row3(Sum (&sum)[kSquares][2], const Word* row, int stride, int n,
                          const Word* weights) {
  for (int c = 0; c < n; ++c, weights += 3 * kBlock) {
#pragma GCC unroll 3
    for (int kx = 0; kx < 3; ++kx) {
      Factors w0, w1;
      load_factors(weights + kx * kBlock, w0);
      load_factors(weights + kx * kBlock + kLanes, w1);
#pragma GCC unroll 8
      for (int s = 0; s < kSquares; ++s) {
        const int file = kFirst + s + kx - 1;
        if (file < 0 || file > 7) continue;
        Factors x;
        broadcast(row + file * stride + c, x);
        dot(sum[s][0], x, w0);
        dot(sum[s][1], x, w1);
      }
    }
  }
}

template <int kFirst>
TAHL_INLINE void tile3(const ConvArgs& args, const Word* in, int rank, const Word* weights,
                       const Finish& f, long board) {
  const int n = words(args.in_channels), in_stride = padded_words(args.in_channels);
  Sum sum[kSquares][2] = {};
  for (int ky = 0; ky < 3; ++ky) {
    const int from = rank + ky - 1;
    if (from < 0 || from > 7) continue;
    add_row3<kFirst>(sum, in + from * 8 * in_stride, in_stride, n, weights + ky * n * 3 * kBlock);
  }
  const int stride = pad(args.out_channels);
  end_tile(sum, f, board + (rank * 8 + kFirst) * stride, stride);
}

void conv3_direct(const ConvArgs& args) {
  const int n = words(args.in_channels);
  const long in_board = 64L * padded_words(args.in_channels),
             out_board = 64L * pad(args.out_channels);
  for (int channel = args.range.begin; channel < args.range.end; channel += kBlock) {
    const Word* weights =
        static_cast<const Word*>(args.weights) + static_cast<long>(channel) * n * 9;
    const Finish f = finish_of(args, channel);
    for (int p = 0; p < args.positions; ++p) {
      const Word* in = static_cast<const Word*>(args.in) + p * in_board;
      for (int rank = 0; rank < 8; ++rank) {
        tile3<0>(args, in, rank, weights, f, p * out_board);
        if constexpr (kSquares == 4) tile3<4>(args, in, rank, weights, f, p * out_board);
      }
    }
  }
#if !TAHL_INT8
  finish(args);
#endif
}

// Products of kRows rows of n words, `stride` apart, with n x two vectors of weights. Meanwhile
// kFetch cache lines from `next` on are fetched for each of the n.
template <int kRows, int kFetch = 0>
TAHL_INLINE void multiply_rows(Sum (&sum)[kRows][2], const Word* rows, int stride, int n,
                               const Word* weights, [[maybe_unused]] const Word* next = nullptr) {
  for (int c = 0; c < n; ++c, weights += kBlock) {
#pragma GCC unroll 2
    for (int i = 0; i < kFetch; ++i) __builtin_prefetch(next + (c * kFetch + i) * 16);
    Factors w0, w1;
    load_factors(weights, w0);
    load_factors(weights + kLanes, w1);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Factors x;
      broadcast(rows + r * stride + c, x);
      dot(sum[r][0], x, w0);
      dot(sum[r][1], x, w1);
    }
  }
}

double peak(long n) {
  Sum sum[8][2] = {};
  // Told apart, or the compiler would see that all sums are the same.
  for (int r = 0; r < 8; ++r) __asm__("" : "+x"(sum[r][0]), "+x"(sum[r][1]));
  Factors x = {}, w = {};
  for (long i = 0; i < n; ++i) {
    __asm__ volatile("" : "+x"(x), "+x"(w));
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) {
      dot(sum[r][0], x, w);
      dot(sum[r][1], w, x);
    }
  }
  for (int r = 0; r < 8; ++r) __asm__ volatile("" : : "x"(sum[r][0]), "x"(sum[r][1]));
  return static_cast<double>(n) * 16 * kLanes * kGroup;
}

#if TAHL_INT8

// Cells to bytes.
void quantize(const PrepareArgs& args) {
  const int stride = pad(args.channels);
  for (int square = 0; square < 64 * args.positions; ++square) {
    const Cell* in = static_cast<const Cell*>(args.in) + static_cast<long>(square) * stride;
    unsigned char* out = static_cast<unsigned char*>(args.out) + static_cast<long>(square) * stride;
    for (int c = args.range.begin; c < args.range.end; c += kLanes) {
      const __m512i rounded =
          _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(in + c), _mm512_set1_ps(args.scale)));
      _mm_storeu_si128(reinterpret_cast<__m128i_u*>(out + c),
                       _mm512_cvtusepi32_epi8(_mm512_max_epi32(rounded, _mm512_setzero_si512())));
    }
  }
}

#else

void conv1(const ConvArgs& args) {
  const int n = words(args.in_channels), in_stride = padded_words(args.in_channels);
  const int stride = pad(args.out_channels);
  for (int channel = args.range.begin; channel < args.range.end; channel += kBlock) {
    const Word* weights = static_cast<const Word*>(args.weights) + static_cast<long>(channel) * n;
    const Finish f = finish_of(args, channel);
    for (int square = 0; square < 64 * args.positions; square += kSquares) {
      Sum sum[kSquares][2] = {};
      multiply_rows<kSquares>(
          sum, static_cast<const Word*>(args.in) + static_cast<long>(square) * in_stride, in_stride,
          n, weights);
      end_tile(sum, f, static_cast<long>(square) * stride, stride);
    }
  }
  finish(args);
}

template <int kValue>
struct Int {
  static constexpr int value = kValue;
};

// ---- Winograd's convolution, F(4x4, 3x3) ----
//
// Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): a tile of 4x4 results
// needs 6x6 inputs d; Y = A'[(G g G') o (B' d B)]A, so that every input channel costs 36 products
// instead of 144, and the products of all tiles and channels are 36 matrix products. Interpolated
// at 0, +-a, +-b and infinity with a = 1/sqrt(2), b = sqrt(2): errors in bfloat16 are half those of
// the usual 0, +-1, +-2. Squares beyond the edge are zeros. A board is four tiles.

constexpr float kA = 0.70710678118654752f, kB = 1.41421356237309505f;
constexpr float kA2 = 0.5f, kB2 = 2.0f;  // and a b = 1
constexpr float kA3 = kA * kA2, kB3 = kB * kB2;

// B' d: the polynomials of degree 5 that vanish at all points but one.
TAHL_INLINE void transform_in(const Vec (&d)[6], Vec (&v)[6]) {
  v[0] = d[4] - 2.5f * d[2] + d[0];
  v[5] = d[5] - 2.5f * d[3] + d[1];
  const Vec ta = d[4] - kB2 * d[2], ua = d[3] - kB2 * d[1];
  v[1] = ta + kA * ua;
  v[2] = ta - kA * ua;
  const Vec tb = d[4] - kA2 * d[2], ub = d[3] - kA2 * d[1];
  v[3] = tb + kB * ub;
  v[4] = tb - kB * ub;
}

// A' m.
TAHL_INLINE void transform_out(const Vec (&m)[6], Vec (&y)[4]) {
  const Vec sa = m[1] + m[2], da = m[1] - m[2], sb = m[3] + m[4], db = m[3] - m[4];
  y[0] = m[0] + sa + sb;
  y[1] = kA * da + kB * db;
  y[2] = kA2 * sa + kB2 * sb;
  y[3] = kA3 * da + (kB3 * db + m[5]);
}

// Transformed tiles: [group of kSquares tiles][36][tile][padded words]. Between two of the 36 lies
// a cache line more, so that the 36 stores of a tile do not fall into one set of the cache.
constexpr int kSkew = 16;
TAHL_INLINE long point_stride(int rows, int in_words) {
  return static_cast<long>(rows) * in_words + kSkew;
}
TAHL_INLINE long group_stride(int in_words) { return 36 * point_stride(kSquares, in_words); }

template <int kTileY, int kTileX>
TAHL_INLINE void transform_tile(const Cell* board, int stride, Cell* out, long point) {
  constexpr int kFirstY = 4 * kTileY - 1, kFirstX = 4 * kTileX - 1;
  // Two vectors of channels, so that every store is a whole cache line of bfloat16.
  Vec t[2][6][6];
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) {
      const int file = kFirstX + x;
      Vec d[6] = {}, v[6] = {};
      if (file >= 0 && file < 8) {
#pragma GCC unroll 6
        for (int y = 0; y < 6; ++y) {
          const int rank = kFirstY + y;
          if (rank >= 0 && rank < 8)
            load_cells(board + (rank * 8 + file) * stride + j * kLanes, d[y]);
        }
        transform_in(d, v);
      }
#pragma GCC unroll 6
      for (int y = 0; y < 6; ++y) t[j][y][x] = v[y];
    }
  }
#pragma GCC unroll 6
  for (int y = 0; y < 6; ++y) {
    Vec v[2][6];
    transform_in(t[0][y], v[0]);
    transform_in(t[1][y], v[1]);
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) store_cells(out + (y * 6 + x) * point, v[0][x], v[1][x]);
  }
}

void prepare_winograd(const PrepareArgs& args) {
  const int stride = pad(args.channels), in_words = padded_words(args.channels);
  const int tiles = 4 * args.positions;
  for (int p = 0; p < args.positions; ++p) {
    const Cell* board = static_cast<const Cell*>(args.in) + 64L * p * stride;
    const int tile = 4 * p, group = tile / kSquares;
    const int rows = tiles - group * kSquares < kSquares ? tiles - group * kSquares : kSquares;
    const long point = point_stride(rows, in_words) * kGroup;
    Cell* out = static_cast<Cell*>(args.out) + (group * group_stride(in_words)) * kGroup +
                static_cast<long>(tile % kSquares) * stride;
    for (int c = args.range.begin; c < args.range.end; c += kBlock) {
      transform_tile<0, 0>(board + c, stride, out + c, point);
      transform_tile<0, 1>(board + c, stride, out + c + stride, point);
      transform_tile<1, 0>(board + c, stride, out + c + 2 * stride, point);
      transform_tile<1, 1>(board + c, stride, out + c + 3 * stride, point);
    }
  }
}

template <int kRows, int kFetch>
TAHL_INLINE void multiply_group(const Word* in, int in_words, int n, const Word* weights,
                                const Word* next, float* out) {
  Sum sum[kRows][2] = {};
  multiply_rows<kRows, kFetch>(sum, in, in_words, n, weights, next);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    TAHL_STORE(out + r * 36 * kBlock, sum[r][0]);
    TAHL_STORE(out + r * 36 * kBlock + kLanes, sum[r][1]);
  }
}

// One tile's sums [36][kBlock] to the board.
TAHL_INLINE void finish_tile(const float* sums, const Finish& f, long at, int stride) {
  Vec result[2][4][4];
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    Vec t[4][6];
#pragma GCC unroll 6
    for (int x = 0; x < 6; ++x) {
      Vec m[6], y[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) m[i] = TAHL_LOAD(sums + (i * 6 + x) * kBlock + j * kLanes);
      transform_out(m, y);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) t[i][x] = y[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) transform_out(t[i], result[j][i]);
  }
#pragma GCC unroll 4
  for (int y = 0; y < 4; ++y) {
#pragma GCC unroll 4
    for (int x = 0; x < 4; ++x) {
      const long cell = at + (y * 8 + x) * stride;
#pragma GCC unroll 2
      for (int j = 0; j < 2; ++j) {
        Vec& v = result[j][y][x];
        v += TAHL_LOAD(f.bias + j * kLanes);
        if (f.residual != nullptr) {
          Vec r;
          load_cells(f.residual + cell + j * kLanes, r);
          v += r;
        }
        if (f.relu) relu_in_place(v);
      }
      store_cells(f.out + cell, result[0][y][x], result[1][y][x]);
    }
  }
}

void conv3_winograd(const ConvArgs& args) {
  const int n = words(args.in_channels), in_words = padded_words(args.in_channels);
  const int stride = pad(args.out_channels), tiles = 4 * args.positions;
  for (int channel = args.range.begin; channel < args.range.end; channel += kBlock) {
    const Word* weights =
        static_cast<const Word*>(args.weights) + static_cast<long>(channel) * n * 36;
    for (int i = 0; i < 36; ++i, weights += n * kBlock) {
      const Word* in = static_cast<const Word*>(args.in);
      float* out = args.scratch + i * kBlock;
      // The first groups fetch the weights of the next of the 36: half of them each, if there are
      // two groups.
      const Word* next = weights + n * kBlock;
      constexpr int kHalf = kBlock * sizeof(Word) / 64 / 2;  // lines
      int tile = 0;
      const auto group = [&](auto rows, auto fetch) __attribute__((always_inline)) {
        multiply_group<rows.value, fetch.value>(in + i * point_stride(rows.value, in_words),
                                                in_words, n, weights, next, out);
        in += group_stride(in_words);
        out += kSquares * 36 * kBlock;
        tile += rows.value;
      };
      if (tiles < 2 * kSquares) {
        if (tiles >= kSquares) group(Int<kSquares>(), Int<2 * kHalf>());
      } else {
        group(Int<kSquares>(), Int<kHalf>());
        next += n * kBlock / 2;
        group(Int<kSquares>(), Int<kHalf>());
        while (tile + kSquares <= tiles) group(Int<kSquares>(), Int<0>());
      }
      if (tile < tiles) group(Int<4>(), Int<2 * kHalf>());
    }
    const Finish f = finish_of(args, channel);
    for (int tile = 0; tile < tiles; ++tile) {
      const long square = tile / 4 * 64 + tile / 2 % 2 * 32 + tile % 2 * 4;
      finish_tile(args.scratch + static_cast<long>(tile) * 36 * kBlock, f, square * stride, stride);
    }
  }
  finish(args);
}

// ---- The first convolution ----

// Which of 64 numbers are not zero, as a set; and whether all are the same.
TAHL_INLINE unsigned long long set_squares(const float* plane, bool& same) {
  unsigned long long set = 0;
  same = true;
#if TAHL_LANES == 16
  const __m512 first = _mm512_set1_ps(plane[0]);
  for (int i = 0; i < 4; ++i) {
    const __m512 x = _mm512_loadu_ps(plane + 16 * i);
    const __mmask16 set_here = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    set |= static_cast<unsigned long long>(set_here) << 16 * i;
    same = same && _mm512_cmp_ps_mask(x, first, _CMP_EQ_OQ) == 0xffff;
  }
#else
  for (int i = 0; i < 64; ++i) {
    set |= static_cast<unsigned long long>(plane[i] != 0) << i;
    same = same && plane[i] == plane[0];
  }
#endif
  return set;
}

// The planes of one position: those of one number all over, and for each square the others that
// are not zero there.
struct SetPlanes {
  int same_count = 0;
  int count[64] = {};
  unsigned short same[kMaxStemPlanes];
  unsigned short planes[64][kMaxStemPlanes];
};

void find_set_planes(const float* in, int planes, SetPlanes& found) {
  found.same_count = 0;
  for (int& count : found.count) count = 0;
  for (int plane = 0; plane < planes; ++plane, in += 64) {
    bool same = false;
    unsigned long long set = set_squares(in, same);
    if (set == 0) continue;
    if (same) {
      found.same[found.same_count++] = static_cast<unsigned short>(plane);
      continue;
    }
    for (; set != 0; set &= set - 1) {
      const int square = __builtin_ctzll(set);
      found.planes[square][found.count[square]++] = static_cast<unsigned short>(plane);
    }
  }
}

void stem(const StemArgs& args) {
  const int stride = pad(args.out_channels);
  SetPlanes found;
  for (int p = 0; p < args.positions; ++p) {
    const float* in = args.in + static_cast<long>(p) * args.planes * 64;
    find_set_planes(in, args.planes, found);
    for (int channel = args.range.begin; channel < args.range.end; channel += kBlock) {
      const float* weights = args.weights + static_cast<long>(channel) * args.planes * 18;
      Vec everywhere[9][2];  // bias and planes of one number, by rank and file
      for (Vec(&sum)[2] : everywhere) {
        sum[0] = TAHL_LOAD(args.bias + channel);
        sum[1] = TAHL_LOAD(args.bias + channel + kLanes);
      }
      for (int i = 0; i < found.same_count; ++i) {
        const int plane = found.same[i];
        const float* w = weights + (plane * 18 + 9) * kBlock;
        for (int edge = 0; edge < 9; ++edge) {
          everywhere[edge][0] += in[plane * 64] * TAHL_LOAD(w + edge * kBlock);
          everywhere[edge][1] += in[plane * 64] * TAHL_LOAD(w + edge * kBlock + kLanes);
        }
      }
      // A board with a square more on each side, so that no tap needs to be asked where it falls.
      alignas(64) float sums[10 * 10][kBlock] = {};
      for (int square = 0; square < 64; ++square) {
        if (found.count[square] == 0) continue;
        // All planes of a square before its neighbours hear of it.
        Vec taps[9][2] = {};
        for (int i = 0; i < found.count[square]; ++i) {
          const int plane = found.planes[square][i];
          const float x = in[plane * 64 + square];
          const float* w = weights + plane * 18 * kBlock;
#pragma GCC unroll 9
          for (int tap = 0; tap < 9; ++tap) {
            taps[tap][0] += x * TAHL_LOAD(w + tap * kBlock);
            taps[tap][1] += x * TAHL_LOAD(w + tap * kBlock + kLanes);
          }
        }
        float* to = sums[(square / 8 + 2) * 10 + square % 8 + 2];
#pragma GCC unroll 9
        for (int tap = 0; tap < 9; ++tap) {
          float* sum = to - (tap / 3 * 10 + tap % 3) * kBlock;
          TAHL_STORE(sum, TAHL_LOAD(sum) + taps[tap][0]);
          TAHL_STORE(sum + kLanes, TAHL_LOAD(sum + kLanes) + taps[tap][1]);
        }
      }
      Cell* out = static_cast<Cell*>(args.out) + static_cast<long>(p) * 64 * stride + channel;
      for (int square = 0; square < 64; ++square, out += stride) {
        const int rank = square / 8, file = square % 8;
        const int edge = (rank == 0 ? 0 : rank == 7 ? 6 : 3) + (file == 0 ? 0 : file == 7 ? 2 : 1);
        const float* sum = sums[(rank + 1) * 10 + file + 1];
        Vec x = TAHL_LOAD(sum) + everywhere[edge][0];
        Vec y = TAHL_LOAD(sum + kLanes) + everywhere[edge][1];
        if (args.relu) {
          relu_in_place(x);
          relu_in_place(y);
        }
        store_cells(out, x, y);
      }
    }
  }
}

// ---- Vectors ----

TAHL_INLINE void load_weights(const float* w, Vec& x) { x = TAHL_LOAD(w); }
typedef unsigned short Half __attribute__((may_alias));
TAHL_INLINE void load_weights(const Half* w, Vec& x) {
#if TAHL_LANES == 16
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(w));
  x = reinterpret_cast<Vec>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#else
  IntVec bits = {};
  for (int i = 0; i < kLanes; ++i) bits[i] = w[i] << 16;
  x = reinterpret_cast<Vec>(bits);
#endif
}

TAHL_INLINE float total_of(const Vec& x) {
#if TAHL_LANES == 16
  return _mm512_reduce_add_ps(reinterpret_cast<__m512>(x));
#else
  float total = 0;
  for (int lane = 0; lane < kLanes; ++lane) total += x[lane];
  return total;
#endif
}

// kPositions vectors times a block of outputs. Two sums an output hide the latency; always two, so
// that a position's result does not depend on its company.
template <int kPositions, class Weight>
TAHL_INLINE void linear_block(const LinearArgs& args, int first, int row, const Weight* weights) {
  const float* in = static_cast<const float*>(args.in) + static_cast<long>(first) * args.in_size;
  constexpr int kParts = 2;
  Vec sum[kParts][kPositions][2] = {};
  for (int i = 0; i < args.in_size; i += kParts) {
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part) {
      Vec w0, w1;
      load_weights(weights + (i + part) * kBlock, w0);
      load_weights(weights + (i + part) * kBlock + kLanes, w1);
#pragma GCC unroll 4
      for (int p = 0; p < kPositions; ++p) {
        const float x = in[static_cast<long>(p) * args.in_size + i + part];
        sum[part][p][0] += x * w0;
        sum[part][p][1] += x * w1;
      }
    }
  }
  for (int p = 0; p < kPositions; ++p) {
    for (int j = 0; j < 2; ++j) {
      Vec total = TAHL_LOAD(args.bias + row + j * kLanes);
      for (int part = 0; part < kParts; ++part) total += sum[part][p][j];
      if (args.activation == Activation::Relu) relu_in_place(total);
      TAHL_STORE(args.out + static_cast<long>(first + p) * args.out_size + row + j * kLanes, total);
    }
  }
}

template <class Weight>
TAHL_INLINE void linear_of(const LinearArgs& args) {
  for (int row = args.begin; row < args.end; row += kBlock) {
    const Weight* weights =
        static_cast<const Weight*>(args.weights) + static_cast<long>(row) * args.in_size;
    int p = 0;
    for (; p + 4 <= args.positions; p += 4) linear_block<4>(args, p, row, weights);
    for (; p < args.positions; ++p) linear_block<1>(args, p, row, weights);
  }
}
void linear(const LinearArgs& args) { linear_of<float>(args); }
void linear_half(const LinearArgs& args) { linear_of<Half>(args); }

// The same of a board's cells, in their own arithmetic: `in` is the board, in_size its cells.
template <int kPositions>
TAHL_INLINE void linear_cells_block(const LinearArgs& args, int first, int row,
                                    const Word* weights) {
  constexpr int kParts = 2;
  const int half = args.in_size / kGroup / kParts;
  const Word* in =
      static_cast<const Word*>(args.in) + static_cast<long>(first) * args.in_size / kGroup;
  Sum sum[kParts][kPositions][2] = {};
  for (int i = 0; i < half; ++i) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const int at = part * half + i;
      Factors w0, w1;
      load_factors(weights + at * kBlock, w0);
      load_factors(weights + at * kBlock + kLanes, w1);
#pragma GCC unroll 4
      for (int p = 0; p < kPositions; ++p) {
        Factors x;
        broadcast(in + static_cast<long>(p) * args.in_size / kGroup + at, x);
        dot(sum[part][p][0], x, w0);
        dot(sum[part][p][1], x, w1);
      }
    }
  }
  for (int p = 0; p < kPositions; ++p) {
    for (int j = 0; j < 2; ++j) {
      Vec total = sum[0][p][j] + sum[1][p][j] + TAHL_LOAD(args.bias + row + j * kLanes);
      if (args.activation == Activation::Relu) relu_in_place(total);
      TAHL_STORE(args.out + static_cast<long>(first + p) * args.out_size + row + j * kLanes, total);
    }
  }
}

void linear_cells(const LinearArgs& args) {
  for (int row = args.begin; row < args.end; row += kBlock) {
    const Word* weights =
        static_cast<const Word*>(args.weights) + static_cast<long>(row) * args.in_size / kGroup;
    int p = 0;
    for (; p + 4 <= args.positions; p += 4) linear_cells_block<4>(args, p, row, weights);
    for (; p < args.positions; ++p) linear_cells_block<1>(args, p, row, weights);
  }
}

template <class Weight>
TAHL_INLINE float dot_of(const float* x, const Weight* weights, int n) {
  Vec sum[4] = {};
  const Weight* w = weights;
  int i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Vec v;
      load_weights(w + i + j * kLanes, v);
      sum[j] += TAHL_LOAD(x + i + j * kLanes) * v;
    }
  }
  for (; i < n; i += kLanes) {
    Vec v;
    load_weights(w + i, v);
    sum[0] += TAHL_LOAD(x + i) * v;
  }
  const Vec all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  return total_of(all);
}
float dot_row(const float* x, const void* w, int n) {
  return dot_of(x, static_cast<const float*>(w), n);
}
float dot_half(const float* x, const void* w, int n) {
  return dot_of(x, static_cast<const Half*>(w), n);
}

template <class Weight>
TAHL_INLINE float point_of(const Cell* board, int stride, int square, const Weight* weights) {
  const int rank = square / 8, file = square % 8;
  Vec sum[2] = {};
  for (int ky = 0; ky < 3; ++ky) {
    for (int kx = 0; kx < 3; ++kx, weights += stride) {
      const int y = rank + ky - 1, x = file + kx - 1;
      if (y < 0 || y > 7 || x < 0 || x > 7) continue;
      const Cell* cells = board + (y * 8 + x) * stride;
      for (int c = 0; c < stride; c += kBlock) {
#pragma GCC unroll 2
        for (int j = 0; j < 2; ++j) {
          Vec cell, w;
          load_cells(cells + c + j * kLanes, cell);
          load_weights(weights + c + j * kLanes, w);
          sum[j] += cell * w;
        }
      }
    }
  }
  const Vec both = sum[0] + sum[1];
  return total_of(both);
}
float point(const void* board, int stride, int square, const void* weights) {
  return point_of(static_cast<const Cell*>(board), stride, square,
                  static_cast<const float*>(weights));
}
float point_half(const void* board, int stride, int square, const void* weights) {
  return point_of(static_cast<const Cell*>(board), stride, square,
                  static_cast<const Half*>(weights));
}

// ---- Boards, cell by cell ----

void scale_bias(const ScaleBiasArgs& args) {
  const int stride = pad(args.channels);
  const bool relu = args.activation == Activation::Relu;
  for (int p = 0; p < args.positions; ++p) {
    const float* both = args.both + static_cast<long>(p) * args.both_stride;
    for (int c = args.range.begin; c < args.range.end; c += kLanes) {
      Vec scale = TAHL_LOAD(both + c);
      sigmoid_in_place(scale);
      Vec bias = {};
      for (int lane = 0; lane < kLanes && c + lane < args.channels; ++lane)
        bias[lane] = both[args.channels + c + lane];
      const long board = static_cast<long>(p) * 64 * stride + c;
      const Cell* in = static_cast<const Cell*>(args.in) + board;
      const Cell* residual =
          args.residual == nullptr ? nullptr : static_cast<const Cell*>(args.residual) + board;
      Cell* out = static_cast<Cell*>(args.out) + board;
      for (int square = 0; square < 64; ++square, in += stride, out += stride) {
        Vec x;
        load_cells(in, x);
        x = scale * x + bias;
        if (residual != nullptr) {
          Vec r;
          load_cells(residual + square * stride, r);
          x += r;
        }
        if (relu) relu_in_place(x);
        store_cells(out, x);
      }
    }
  }
  if (args.activation != Activation::None && !relu)
    activate({args.positions, stride, args.range, args.out, nullptr, nullptr, args.out},
             args.activation);
}

template <class F>
TAHL_INLINE void each_cell(const CellArgs& args, F f) {
  for (int square = 0; square < 64 * args.positions; ++square)
    for (int c = args.range.begin; c < args.range.end; c += kLanes)
      f(static_cast<long>(square) * args.stride + c);
}

void add(const CellArgs& args) {
  each_cell(
      args, [&](long at) __attribute__((always_inline)) {
        Vec x, y;
        load_cells(static_cast<const Cell*>(args.x) + at, x);
        load_cells(static_cast<const Cell*>(args.y) + at, y);
        store_cells(static_cast<Cell*>(args.out) + at, x + y);
      });
}

void mix(const CellArgs& args) {
  each_cell(
      args, [&](long at) __attribute__((always_inline)) {
        Vec x, y, z;
        load_cells(static_cast<const Cell*>(args.x) + at, x);
        load_cells(static_cast<const Cell*>(args.y) + at, y);
        load_cells(static_cast<const Cell*>(args.z) + at, z);
        store_cells(static_cast<Cell*>(args.out) + at, y + z * (x - y));
      });
}

void to_floats(const CellArgs& args) {
  each_cell(
      args, [&](long at) __attribute__((always_inline)) {
        Vec x;
        load_cells(static_cast<const Cell*>(args.x) + at, x);
        TAHL_STORE(static_cast<float*>(args.out) + at, x);
      });
}

void pool(const CellArgs& args) {
  for (int p = 0; p < args.positions; ++p) {
    for (int c = args.range.begin; c < args.range.end; c += kLanes) {
      const Cell* in = static_cast<const Cell*>(args.x) + 64L * p * args.stride + c;
      Vec sum[4] = {};
      for (int square = 0; square < 64; square += 4) {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          Vec x;
          load_cells(in + (square + i) * args.stride, x);
          sum[i] += x;
        }
      }
      TAHL_STORE(static_cast<float*>(args.out) + static_cast<long>(p) * args.stride + c,
                 ((sum[0] + sum[1]) + (sum[2] + sum[3])) * (1 / 64.0f));
    }
  }
}

void load_planes(const float* planes, int channels, int stride, void* out) {
  for (int c = 0; c < stride; c += kLanes) {
    for (int square = 0; square < 64; ++square) {
      Vec x = {};
      for (int lane = 0; lane < kLanes && c + lane < channels; ++lane)
        x[lane] = planes[(c + lane) * 64 + square];
      store_cells(static_cast<Cell*>(out) + square * stride + c, x);
    }
  }
}

#endif  // !TAHL_INT8

}  // namespace

#if TAHL_INT8
// The functions that differ from those of floats.
extern const CpuKernels kKernels;
constexpr CpuKernels kKernels{.name = TAHL_NAME,
                              .arithmetic = Arithmetic::Int8,
                              .cell_bytes = sizeof(Cell),
                              .block = kBlock,
                              .rows = kSquares,
                              .prepare_direct = quantize,
                              .conv3_direct = conv3_direct,
                              .peak = peak};
#else
extern const CpuKernels kKernels;
constexpr CpuKernels kKernels{.name = TAHL_NAME,
                              .arithmetic = TAHL_BF16 ? Arithmetic::Bf16 : Arithmetic::Fp32,
                              .cell_bytes = sizeof(Cell),
                              .block = kBlock,
                              .rows = kSquares,
                              .prepare_winograd = prepare_winograd,
                              .conv3_winograd = conv3_winograd,
                              .conv3_direct = conv3_direct,
                              .conv1 = conv1,
                              .stem = stem,
                              .linear = linear,
                              .linear_half = linear_half,
                              .linear_cells = linear_cells,
                              .dot = dot_row,
                              .dot_half = dot_half,
                              .point = point,
                              .point_half = point_half,
                              .scale_bias = scale_bias,
                              .activate = activate,
                              .add = add,
                              .mix = mix,
                              .pool = pool,
                              .to_floats = to_floats,
                              .load_planes = load_planes,
                              .activate_vector = activate_vector,
                              .peak = peak};
#endif

#undef TAHL_INLINE
#undef TAHL_LOAD
#undef TAHL_STORE

}  // namespace tahl::nn::TAHL_LEVEL
