// The kernels, included by cpu_kernels_*.cpp after they have chosen the instruction set and defined
//   TAHL_LANES    floats of a vector
//   TAHL_SQUARES  squares of a tile: with two vectors of channels each they fill the registers
//   TAHL_LEVEL    a namespace
//
// Nothing of the standard library may be used here: the linker keeps one copy of an inline function
// for the whole program, and it must not be one that needs AVX-512.
//
// Convolutions are direct. A tile of TAHL_SQUARES squares of one row times two vectors of output
// channels stays in registers while all inputs pass; taps beyond the edge are skipped when
// compiling (files) or by the loop's bounds (ranks), so nothing is padded.

namespace tahl::nn::TAHL_LEVEL {
namespace {

constexpr int kLanes = TAHL_LANES;
constexpr int kSquares = TAHL_SQUARES;
constexpr int kBlock = 2 * kLanes;

typedef float Vec __attribute__((vector_size(TAHL_LANES * 4)));
typedef int IntVec __attribute__((vector_size(TAHL_LANES * 4)));
// The same without a claim about alignment.
typedef float LooseVec __attribute__((vector_size(TAHL_LANES * 4), aligned(4), may_alias));

#define TAHL_INLINE inline __attribute__((always_inline))
#define TAHL_LOAD(pointer) (*reinterpret_cast<const LooseVec*>(pointer))
#define TAHL_STORE(pointer, vec) (*reinterpret_cast<LooseVec*>(pointer) = (vec))

// 1 / (1 + exp(-x)). exp(y) = 2^n e^r with n = round(y / ln 2); e^r by its series to r^6, |r| <
// 0.35, relative error below 1e-6.
TAHL_INLINE void sigmoid_in_place(Vec& x) {
  Vec y = -x;
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
  const Vec power = reinterpret_cast<Vec>((n + 127) << 23);
  x = 1.0f / (1.0f + e * power);
}

TAHL_INLINE void activate_in_place(Vec& x, Activation activation) {
  const Vec zero = {};
  if (activation == Activation::Relu) x = x > zero ? x : zero;
  if (activation == Activation::Sigmoid) sigmoid_in_place(x);
  if (activation == Activation::Tanh) {  // tanh(x) = 2 sigmoid(2x) - 1
    x = 2.0f * x;
    sigmoid_in_place(x);
    x = 2.0f * x - 1.0f;
  }
}

void activate(const float* in, float* out, __SIZE_TYPE__ n, Activation activation) {
  for (__SIZE_TYPE__ i = 0; i < n; i += kLanes) {
    Vec x = TAHL_LOAD(in + i);
    activate_in_place(x, activation);
    TAHL_STORE(out + i, x);
  }
}

// The activations that would not fit beside a tile in the registers.
void finish(const ConvArgs& args) {
  if (args.activation == Activation::None || args.activation == Activation::Relu) return;
  const long n = 64L * args.positions * pad(args.out_channels);
  activate(args.out, args.out, static_cast<__SIZE_TYPE__>(n), args.activation);
}

TAHL_INLINE void begin_tile(Vec (&sum)[kSquares][2], const float* bias) {
#pragma GCC unroll 8
  for (int s = 0; s < kSquares; ++s) {
    sum[s][0] = TAHL_LOAD(bias);
    sum[s][1] = TAHL_LOAD(bias + kLanes);
  }
}

TAHL_INLINE void end_tile(Vec (&sum)[kSquares][2], float* out, const float* residual, int stride,
                          bool relu) {
  const Vec zero = {};
#pragma GCC unroll 8
  for (int s = 0; s < kSquares; ++s) {
    if (residual != nullptr) {
      sum[s][0] += TAHL_LOAD(residual + s * stride);
      sum[s][1] += TAHL_LOAD(residual + s * stride + kLanes);
    }
    if (relu) {
      sum[s][0] = sum[s][0] > zero ? sum[s][0] : zero;
      sum[s][1] = sum[s][1] > zero ? sum[s][1] : zero;
    }
    TAHL_STORE(out + s * stride, sum[s][0]);
    TAHL_STORE(out + s * stride + kLanes, sum[s][1]);
  }
}

// One input row's part in the tile that begins on file kFirst: `row` is that rank's a-file,
// `weights` [in][3][kBlock].
template <int kFirst>
TAHL_INLINE void add_row3(Vec (&sum)[kSquares][2], const float* row, int stride, int in_channels,
                          const float* weights) {
  for (int c = 0; c < in_channels; ++c, weights += 3 * kBlock) {
#pragma GCC unroll 3
    for (int kx = 0; kx < 3; ++kx) {
      const Vec w0 = TAHL_LOAD(weights + kx * kBlock);
      const Vec w1 = TAHL_LOAD(weights + kx * kBlock + kLanes);
#pragma GCC unroll 8
      for (int s = 0; s < kSquares; ++s) {
        const int file = kFirst + s + kx - 1;
        if (file < 0 || file > 7) continue;
        const float x = row[file * stride + c];
        sum[s][0] += x * w0;
        sum[s][1] += x * w1;
      }
    }
  }
}

template <int kFirst>
TAHL_INLINE void tile3(const ConvArgs& args, const float* in, int in_stride, int rank,
                       const float* weights, const float* bias, const float* residual, float* out,
                       int out_stride) {
  Vec sum[kSquares][2];
  begin_tile(sum, bias);
  for (int ky = 0; ky < 3; ++ky) {
    const int from = rank + ky - 1;
    if (from < 0 || from > 7) continue;
    add_row3<kFirst>(sum, in + from * 8 * in_stride, in_stride, args.in_channels,
                     weights + ky * args.in_channels * 3 * kBlock);
  }
  const int at = (rank * 8 + kFirst) * out_stride;
  end_tile(sum, out + at, residual == nullptr ? nullptr : residual + at, out_stride,
           args.activation == Activation::Relu);
}

void conv3(const ConvArgs& args) {
  const int in_stride = pad(args.in_channels), out_stride = pad(args.out_channels);
  for (int block = 0; block < out_stride; block += kBlock) {
    const float* weights = args.weights + static_cast<long>(block) * args.in_channels * 9;
    for (int p = 0; p < args.positions; ++p) {
      const float* in = args.in + static_cast<long>(p) * 64 * in_stride;
      const long at = static_cast<long>(p) * 64 * out_stride + block;
      const float* residual = args.residual == nullptr ? nullptr : args.residual + at;
      for (int rank = 0; rank < 8; ++rank) {
        tile3<0>(args, in, in_stride, rank, weights, args.bias + block, residual, args.out + at,
                 out_stride);
        if constexpr (kSquares == 4) {
          tile3<4>(args, in, in_stride, rank, weights, args.bias + block, residual, args.out + at,
                   out_stride);
        }
      }
    }
  }
  finish(args);
}

void conv1(const ConvArgs& args) {
  const int in_stride = pad(args.in_channels), out_stride = pad(args.out_channels);
  const int squares = args.positions * 64;
  for (int block = 0; block < out_stride; block += kBlock) {
    const float* weights = args.weights + static_cast<long>(block) * args.in_channels;
    for (int square = 0; square < squares; square += kSquares) {
      const float* in = args.in + static_cast<long>(square) * in_stride;
      Vec sum[kSquares][2];
      begin_tile(sum, args.bias + block);
      for (int c = 0; c < args.in_channels; ++c) {
        const Vec w0 = TAHL_LOAD(weights + c * kBlock);
        const Vec w1 = TAHL_LOAD(weights + c * kBlock + kLanes);
#pragma GCC unroll 8
        for (int s = 0; s < kSquares; ++s) {
          const float x = in[s * in_stride + c];
          sum[s][0] += x * w0;
          sum[s][1] += x * w1;
        }
      }
      const long at = static_cast<long>(square) * out_stride + block;
      end_tile(sum, args.out + at, args.residual == nullptr ? nullptr : args.residual + at,
               out_stride, args.activation == Activation::Relu);
    }
  }
  finish(args);
}

// Four rows at a time: four streams keep the memory busy, and the rows stay in the cache for every
// position of the chunk.
void linear(const LinearArgs& args) {
  for (int row = 0; row < args.out_size; row += 4) {
    const float* weights = args.weights + static_cast<long>(row) * args.in_size;
    for (int p = 0; p < args.positions; ++p) {
      const float* in = args.in + static_cast<long>(p) * args.in_size;
      Vec sum[4][2] = {};
      for (int i = 0; i < args.in_size; i += kBlock) {
        const Vec x0 = TAHL_LOAD(in + i), x1 = TAHL_LOAD(in + i + kLanes);
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          const float* w = weights + static_cast<long>(r) * args.in_size + i;
          sum[r][0] += x0 * TAHL_LOAD(w);
          sum[r][1] += x1 * TAHL_LOAD(w + kLanes);
        }
      }
      float* out = args.out + static_cast<long>(p) * args.out_size + row;
      for (int r = 0; r < 4; ++r) {
        const Vec both = sum[r][0] + sum[r][1];
        float total = args.bias[row + r];
        for (int lane = 0; lane < kLanes; ++lane) total += both[lane];
        if (args.activation == Activation::Relu && !(total > 0)) total = 0;
        out[r] = total;
      }
    }
  }
}

void scale_bias(const ScaleBiasArgs& args) {
  const int stride = pad(args.channels);
  for (int p = 0; p < args.positions; ++p) {
    const float* scale = args.scale + static_cast<long>(p) * stride;
    const float* bias = args.bias + static_cast<long>(p) * stride;
    for (int square = 0; square < 64; ++square) {
      const long at = (static_cast<long>(p) * 64 + square) * stride;
      for (int c = 0; c < stride; c += kLanes) {
        Vec x = TAHL_LOAD(scale + c) * TAHL_LOAD(args.in + at + c) + TAHL_LOAD(bias + c);
        if (args.residual != nullptr) x += TAHL_LOAD(args.residual + at + c);
        activate_in_place(x, args.activation);
        TAHL_STORE(args.out + at + c, x);
      }
    }
  }
}

void add(const float* x, const float* y, float* out, __SIZE_TYPE__ n) {
  for (__SIZE_TYPE__ i = 0; i < n; i += kLanes) {
    TAHL_STORE(out + i, TAHL_LOAD(x + i) + TAHL_LOAD(y + i));
  }
}

void mix(const float* z, const float* a, const float* b, float* out, __SIZE_TYPE__ n) {
  for (__SIZE_TYPE__ i = 0; i < n; i += kLanes) {
    const Vec other = TAHL_LOAD(b + i);
    TAHL_STORE(out + i, other + TAHL_LOAD(z + i) * (TAHL_LOAD(a + i) - other));
  }
}

}  // namespace

extern const CpuKernels kKernels;
const CpuKernels kKernels{TAHL_NAME, kBlock, conv3, conv1, linear, scale_bias, activate, add, mix};

#undef TAHL_INLINE
#undef TAHL_LOAD
#undef TAHL_STORE

}  // namespace tahl::nn::TAHL_LEVEL
