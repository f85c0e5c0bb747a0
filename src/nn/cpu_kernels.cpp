#include "nn/cpu_kernels.h"

#include <cstdint>

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

bool cpu_supports(CpuLevel level) {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  switch (level) {
    case CpuLevel::Baseline:
      return true;
    case CpuLevel::Avx2:
      return has_avx2;
    case CpuLevel::Avx512:
      return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return false;
}

CpuLevel best_cpu_level() {
  if (cpu_supports(CpuLevel::Avx512)) return CpuLevel::Avx512;
  return cpu_supports(CpuLevel::Avx2) ? CpuLevel::Avx2 : CpuLevel::Baseline;
}

const CpuKernels& cpu_kernels(CpuLevel level) {
  switch (level) {
    case CpuLevel::Avx512:
      return avx512::kKernels;
    case CpuLevel::Avx2:
      return avx2::kKernels;
    case CpuLevel::Baseline:
      break;
  }
  return baseline::kKernels;
}

std::size_t packed_conv_size(int out_channels, int in_channels, int kernel) {
  return static_cast<std::size_t>(pad(out_channels)) * static_cast<std::size_t>(in_channels) *
         static_cast<std::size_t>(kernel * kernel);
}

void pack_conv(std::span<const float> weights, int out_channels, int in_channels, int kernel,
               int block, std::span<float> packed) {
  std::size_t to = 0;
  for (int first = 0; first < pad(out_channels); first += block) {
    for (int ky = 0; ky < kernel; ++ky) {
      for (int in = 0; in < in_channels; ++in) {
        for (int kx = 0; kx < kernel; ++kx) {
          for (int lane = 0; lane < block; ++lane, ++to) {
            const int out = first + lane;
            const auto from = static_cast<std::size_t>(
                ((std::int64_t{out} * in_channels + in) * kernel + ky) * kernel + kx);
            packed[to] = out < out_channels ? weights[from] : 0;
          }
        }
      }
    }
  }
}

}  // namespace tahl::nn
