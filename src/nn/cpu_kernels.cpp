#include "nn/cpu_kernels.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace tahl::nn {

namespace baseline {
extern const CpuKernels kKernels;
}
namespace avx2 {
extern const CpuKernels kKernels;
}
namespace avx512 {
extern const CpuKernels kKernels;
}
namespace avx512_bf16 {
extern const CpuKernels kKernels;
}
namespace avx512_int8 {
extern const CpuKernels kKernels;
}

bool cpu_supports(CpuLevel level, Arithmetic arithmetic) {
#ifdef __x86_64__
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (arithmetic == Arithmetic::Bf16)
    return level == CpuLevel::Avx512 && has_avx512 && __builtin_cpu_supports("avx512bf16");
  if (arithmetic == Arithmetic::Int8)
    return level == CpuLevel::Avx512 && has_avx512 && __builtin_cpu_supports("avx512vnni");
  return level == CpuLevel::Baseline || (level == CpuLevel::Avx2 ? has_avx2 : has_avx512);
#else
  return level == CpuLevel::Baseline && arithmetic == Arithmetic::Fp32;
#endif
}

CpuLevel best_cpu_level() {
  if (cpu_supports(CpuLevel::Avx512)) return CpuLevel::Avx512;
  return cpu_supports(CpuLevel::Avx2) ? CpuLevel::Avx2 : CpuLevel::Baseline;
}

const CpuKernels& cpu_kernels(CpuLevel level, Arithmetic arithmetic) {
  assert(cpu_supports(level, arithmetic));
#ifdef __x86_64__
  if (arithmetic == Arithmetic::Bf16) return avx512_bf16::kKernels;
  if (arithmetic == Arithmetic::Int8) {
    // Bytes are for 3x3 convolutions; all else is done in floats.
    static const CpuKernels int8 = [] {
      CpuKernels both = avx512::kKernels;
      both.name = avx512_int8::kKernels.name;
      both.arithmetic = Arithmetic::Int8;
      both.prepare_winograd = nullptr;
      both.conv3_winograd = nullptr;
      both.prepare_direct = avx512_int8::kKernels.prepare_direct;
      both.conv3_direct = avx512_int8::kKernels.conv3_direct;
      both.peak = avx512_int8::kKernels.peak;
      return both;
    }();
    return int8;
  }
  if (level == CpuLevel::Avx512) return avx512::kKernels;
  if (level == CpuLevel::Avx2) return avx2::kKernels;
#endif
  return baseline::kKernels;
}

namespace {

int group_of(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::Int8 ? 4 : arithmetic == Arithmetic::Bf16 ? 2 : 1;
}

std::uint32_t word_of(Arithmetic arithmetic, const float* factors) {
  switch (arithmetic) {
    case Arithmetic::Fp32:
      return std::bit_cast<std::uint32_t>(factors[0]);
    case Arithmetic::Bf16:
      return bfloat16_from_float(factors[0]) |
             static_cast<std::uint32_t>(bfloat16_from_float(factors[1])) << 16;
    case Arithmetic::Int8:
      break;
  }
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i) {
    const auto byte = static_cast<std::int8_t>(std::lround(factors[i]));
    word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(byte)) << 8 * i;
  }
  return word;
}

// G g G', in double: the weights of one pair of channels at Winograd's 36 points, whose numbers are
// those of the kernels (cpu_kernels_impl.h).
void transform_weights(const float* g, double* out) {
  constexpr double kPoints[5] = {0, M_SQRT1_2, -M_SQRT1_2, M_SQRT2, -M_SQRT2};
  // 1 / (the product of the point's distances to the others)
  constexpr double kScale[5] = {1, -2. / 3, -2. / 3, 1. / 6, 1. / 6};
  double transform[6][3];
  for (int i = 0; i < 5; ++i) {
    transform[i][0] = kScale[i];
    transform[i][1] = kScale[i] * kPoints[i];
    transform[i][2] = kScale[i] * kPoints[i] * kPoints[i];
  }
  transform[5][0] = transform[5][1] = 0;
  transform[5][2] = 1;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      double sum = 0;
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 3; ++x) sum += transform[i][y] * transform[j][x] * double{g[y * 3 + x]};
      out[i * 6 + j] = sum;
    }
  }
}

}  // namespace

std::uint16_t bfloat16_from_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::size_t prepared_bytes(const CpuKernels& kernels, ConvMethod method, int in_channels,
                           int positions) {
  const auto channels = static_cast<std::size_t>(pad(in_channels));
  const auto n = static_cast<std::size_t>(positions);
  if (method == ConvMethod::Direct)
    return kernels.prepare_direct == nullptr ? 0 : 64 * channels * n;  // bytes
  const auto rows = static_cast<std::size_t>(kernels.rows);
  const std::size_t groups = (4 * n + rows - 1) / rows;
  constexpr std::size_t kSkewBytes = 64;
  return groups * 36 *
         (rows * channels * static_cast<std::size_t>(kernels.cell_bytes) + kSkewBytes);
}

std::size_t scratch_floats(const CpuKernels& kernels, int positions) {
  return static_cast<std::size_t>(4 * positions) * 36 * static_cast<std::size_t>(kernels.block);
}

PackedConv pack_conv(const CpuKernels& kernels, ConvMethod method, std::span<const float> weights,
                     int out_channels, int in_channels, int kernel) {
  const bool winograd = kernel == 3 && method == ConvMethod::Winograd;
  // Bytes serve 3x3 alone; 1x1 is then computed in floats.
  const Arithmetic arithmetic =
      kernels.arithmetic == Arithmetic::Int8 && kernel != 3 ? Arithmetic::Fp32 : kernels.arithmetic;
  const int group = group_of(arithmetic), words = (in_channels + group - 1) / group;
  const int taps = winograd ? 36 : kernel * kernel;

  // [out][in][tap]
  std::vector<float> factors(static_cast<std::size_t>(taps * out_channels) *
                             static_cast<std::size_t>(in_channels));
  if (winograd) {
    for (std::size_t pair = 0; pair < weights.size() / 9; ++pair) {
      double transformed[36];
      transform_weights(&weights[pair * 9], transformed);
      for (std::size_t i = 0; i < 36; ++i)
        factors[pair * 36 + i] = static_cast<float>(transformed[i]);
    }
  } else {
    std::ranges::copy(weights, factors.begin());
  }

  PackedConv packed;
  if (arithmetic == Arithmetic::Int8) {
    packed.scale.assign(static_cast<std::size_t>(pad(out_channels)), 1);
    const std::size_t row = static_cast<std::size_t>(in_channels * taps);
    for (std::size_t o = 0; o < static_cast<std::size_t>(out_channels); ++o) {
      float largest = 0;
      for (std::size_t i = 0; i < row; ++i)
        largest = std::max(largest, std::abs(factors[o * row + i]));
      if (largest == 0) continue;
      packed.scale[o] = largest / 127;
      for (std::size_t i = 0; i < row; ++i) factors[o * row + i] *= 127 / largest;
    }
  }

  // Direct: [out block][ky][word][kx][lane]; Winograd: [out block][point][word][lane].
  const int rows = winograd ? 36 : kernel, columns = winograd ? 1 : kernel;
  packed.words.reserve(static_cast<std::size_t>(pad(out_channels) * words) *
                       static_cast<std::size_t>(taps));
  for (int first = 0; first < pad(out_channels); first += kernels.block) {
    for (int y = 0; y < rows; ++y) {
      for (int w = 0; w < words; ++w) {
        for (int x = 0; x < columns; ++x) {
          for (int out = first; out < first + kernels.block; ++out) {
            float of_word[4] = {};
            for (int i = 0; i < group; ++i) {
              const int in = w * group + i;
              if (out >= out_channels || in >= in_channels) continue;
              of_word[i] =
                  factors[(static_cast<std::size_t>(out) * static_cast<std::size_t>(in_channels) +
                           static_cast<std::size_t>(in)) *
                              static_cast<std::size_t>(taps) +
                          static_cast<std::size_t>(y * columns + x)];
            }
            packed.words.push_back(word_of(arithmetic, of_word));
          }
        }
      }
    }
  }
  return packed;
}

std::vector<float> pack_stem(const CpuKernels& kernels, std::span<const float> weights,
                             int out_channels, int in_channels) {
  std::vector<float> packed;
  packed.reserve(static_cast<std::size_t>(pad(out_channels) * in_channels * 18));
  // Taps that fall on the board from the first, a middle and the last rank or file.
  constexpr int kFirst[3] = {1, 0, 0}, kEnd[3] = {3, 3, 2};
  for (int first = 0; first < pad(out_channels); first += kernels.block) {
    for (int in = 0; in < in_channels; ++in) {
      for (int i = 0; i < 18; ++i) {
        for (int out = first; out < first + kernels.block; ++out) {
          float x = 0;
          if (out < out_channels) {
            const float* taps = &weights[static_cast<std::size_t>(out * in_channels + in) * 9];
            if (i < 9) {
              x = taps[i];
            } else {
              const int rank = (i - 9) / 3, file = (i - 9) % 3;
              for (int ky = kFirst[rank]; ky < kEnd[rank]; ++ky)
                for (int kx = kFirst[file]; kx < kEnd[file]; ++kx) x += taps[ky * 3 + kx];
            }
          }
          packed.push_back(x);
        }
      }
    }
  }
  return packed;
}

}  // namespace tahl::nn
