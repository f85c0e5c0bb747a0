#pragma once

#include <cstddef>
#include <span>

namespace tahl::nn {

// The arithmetic of the CPU network, compiled once for each of the instruction sets below from one
// source (cpu_kernels_impl.h) and chosen when the program runs.
//
// Boards are [position][64][pad(channels)], so that the channels of a square lie together; vectors
// are [position][pad(channels)]. Channels beyond the last are zero or at least finite, and have no
// weights. A chunk is some positions at once, which share each load of the weights.
enum class CpuLevel { Baseline, Avx2, Avx512 };

constexpr int pad(int channels) { return (channels + 31) / 32 * 32; }

enum class Activation { None, Relu, Sigmoid, Tanh };

// out = activation(conv(in) + bias + residual)
struct ConvArgs {
  int positions = 0;
  int in_channels = 0, out_channels = 0;
  const float* in = nullptr;        // board
  const float* weights = nullptr;   // packed by pack_conv for the same block width
  const float* bias = nullptr;      // [pad(out_channels)]
  const float* residual = nullptr;  // board or none
  float* out = nullptr;             // board, not `in`
  Activation activation = Activation::None;
};

// out = activation(weights * in + bias), rows beyond the last are zeros.
struct LinearArgs {
  int positions = 0;
  int in_size = 0, out_size = 0;             // both padded already
  const float* in = nullptr;                 // vector
  const float* weights = nullptr;            // [out_size][in_size]
  const float* bias = nullptr;               // [out_size]
  float* out = nullptr;                      // vector
  Activation activation = Activation::None;  // None or Relu
};

// out = activation(scale * in + bias + residual), scale and bias a channel.
struct ScaleBiasArgs {
  int positions = 0;
  int channels = 0;
  const float* in = nullptr;        // board
  const float* scale = nullptr;     // vector
  const float* bias = nullptr;      // vector
  const float* residual = nullptr;  // board or none
  float* out = nullptr;             // board
  Activation activation = Activation::None;
};

struct CpuKernels {
  const char* name;
  int block;  // output channels of a packed block of convolution weights; divides 32
  void (*conv3)(const ConvArgs&);
  void (*conv1)(const ConvArgs&);
  void (*linear)(const LinearArgs&);
  void (*scale_bias)(const ScaleBiasArgs&);
  // out = activation(x), out = x + y, out = z a + (1 - z) b; n is a multiple of 32.
  void (*activate)(const float* x, float* out, std::size_t n, Activation activation);
  void (*add)(const float* x, const float* y, float* out, std::size_t n);
  void (*mix)(const float* z, const float* a, const float* b, float* out, std::size_t n);
};

bool cpu_supports(CpuLevel level);
CpuLevel best_cpu_level();
// Precondition: cpu_supports(level).
const CpuKernels& cpu_kernels(CpuLevel level);

// Floats of pack_conv's result.
std::size_t packed_conv_size(int out_channels, int in_channels, int kernel);
// [out][in][k][k] -> [out block][ky][in][kx][block]: the order in which the kernels read.
void pack_conv(std::span<const float> weights, int out_channels, int in_channels, int kernel,
               int block, std::span<float> packed);

}  // namespace tahl::nn
