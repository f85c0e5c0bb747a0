#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tahl::nn {

// The arithmetic of the CPU network, compiled from one source (cpu_kernels_impl.h) for each of the
// instruction sets below and chosen when the program runs. docs/inference.md tells how it works.
//
// Boards are [position][64][pad(channels)] cells, so that the channels of a square lie together;
// vectors are [position][pad(channels)] floats. Channels beyond the last are zeros. A chunk is some
// positions at once, which share each load of the weights.
enum class CpuLevel : std::uint8_t { Baseline, Avx2, Avx512 };

// What products are computed in. Sums are 32 bits wide always. Boards are floats but for Bf16.
enum class Arithmetic : std::uint8_t { Fp32, Bf16, Int8 };

// How 3x3 convolutions are computed: as they are written, or in tiles of 4x4 squares with 36
// products instead of 144 (Winograd).
enum class ConvMethod : std::uint8_t { Direct, Winograd };

constexpr int pad(int channels) { return (channels + 31) / 32 * 32; }

enum class Activation : std::uint8_t { None, Relu, Sigmoid, Tanh, Mish, Selu };

// Channels that a call is to compute, multiples of 32: threads share a layer by these.
struct ChannelRange {
  int begin = 0, end = 0;
};

// What a 3x3 convolution reads, made from the board: Winograd's transform of its tiles, or its
// cells as bytes.
struct PrepareArgs {
  int positions = 0;
  int channels = 0;
  ChannelRange range;
  const void* in = nullptr;  // board
  float scale = 1;           // Int8: a byte is cell * scale, rounded and cut off at 0 and 255
  void* out = nullptr;
};

// out = activation(conv(in) + bias + residual)
struct ConvArgs {
  int positions = 0;
  int in_channels = 0, out_channels = 0;
  ChannelRange range;              // of the result
  const void* in = nullptr;        // board, or what `prepare` made of it
  const void* weights = nullptr;   // packed by pack_conv() for the same kernels
  const float* bias = nullptr;     // [pad(out_channels)]
  const float* scale = nullptr;    // Int8: a channel's sum is multiplied by it
  const void* residual = nullptr;  // board or none
  void* out = nullptr;             // board, not `in`
  float* scratch = nullptr;        // Winograd: scratch_floats()
  Activation activation = Activation::None;
};

// The first convolution, 3x3, straight from the planes: of a position's planes few squares are not
// zero, and some planes are one number all over. In floats whatever the arithmetic.
inline constexpr int kMaxStemPlanes = 512;
struct StemArgs {
  int positions = 0;
  int planes = 0, out_channels = 0;
  ChannelRange range;
  const float* in = nullptr;       // [positions][planes][64]
  const float* weights = nullptr;  // packed by pack_stem()
  const float* bias = nullptr;     // [pad(out_channels)]
  void* out = nullptr;             // board
  bool relu = false;
};

// out[row] = activation(weights[row] * in + bias) for rows [begin, end), multiples of 32; rows
// beyond the last are zeros.
struct LinearArgs {
  int positions = 0;
  int in_size = 0, out_size = 0;             // padded already
  int begin = 0, end = 0;                    // rows
  const void* in = nullptr;                  // vector, or a board
  const void* weights = nullptr;             // [out block][in_size][block], floats or bfloat16
  const float* bias = nullptr;               // [out_size]
  float* out = nullptr;                      // vector
  Activation activation = Activation::None;  // None or Relu
};

// out = activation(sigmoid(scale) * in + bias + residual), scale and bias a channel.
struct ScaleBiasArgs {
  int positions = 0;
  int channels = 0;
  ChannelRange range;
  const void* in = nullptr;        // board
  const float* both = nullptr;     // vector: `channels` scales, then as many biases
  int both_stride = 0;             // floats of that vector
  const void* residual = nullptr;  // board or none
  void* out = nullptr;             // board
  Activation activation = Activation::None;
};

// Some channels of boards, cell by cell; `stride` cells a square.
struct CellArgs {
  int positions = 0;
  int stride = 0;
  ChannelRange range;
  const void* x = nullptr;
  const void* y = nullptr;
  const void* z = nullptr;
  void* out = nullptr;
};

struct CpuKernels {
  const char* name = nullptr;  // of the instruction set and arithmetic
  Arithmetic arithmetic{};
  int cell_bytes = 4;  // of boards: 4 (float) or 2 (bfloat16)
  int block = 0;       // output channels of a packed block of convolution weights; divides 32
  int rows = 0;        // tiles that Winograd's products take at once

  void (*prepare_winograd)(const PrepareArgs&) = nullptr;  // null: there is no such method
  void (*conv3_winograd)(const ConvArgs&) = nullptr;
  void (*prepare_direct)(const PrepareArgs&) =
      nullptr;  // null: conv3_direct reads the board itself
  void (*conv3_direct)(const ConvArgs&) = nullptr;
  void (*conv1)(const ConvArgs&) = nullptr;
  void (*stem)(const StemArgs&) = nullptr;
  void (*linear)(const LinearArgs&) = nullptr;       // weights are floats
  void (*linear_half)(const LinearArgs&) = nullptr;  // weights are bfloat16
  // `in` is a board, in_size its cells; weights are packed as a 1x1 convolution's.
  void (*linear_cells)(const LinearArgs&) = nullptr;
  float (*dot)(const float* x, const void* weights, int n) = nullptr;  // one row of either
  float (*dot_half)(const float* x, const void* weights, int n) = nullptr;
  // One result of a 3x3 convolution: of the board's `square`, weights [9][stride] of either kind.
  float (*point)(const void* board, int stride, int square, const void* weights) = nullptr;
  float (*point_half)(const void* board, int stride, int square, const void* weights) = nullptr;
  void (*scale_bias)(const ScaleBiasArgs&) = nullptr;
  void (*activate)(const CellArgs&, Activation activation) = nullptr;  // out = activation(x)
  void (*add)(const CellArgs&) = nullptr;                              // out = x + y
  void (*mix)(const CellArgs&) = nullptr;                              // out = z x + (1 - z) y
  void (*pool)(const CellArgs&) = nullptr;       // out: vector of the channels' means
  void (*to_floats)(const CellArgs&) = nullptr;  // out: [position][64][stride] floats
  // floats [channels][64] -> board with `stride` cells a square, a position
  void (*load_planes)(const float* planes, int channels, int stride, void* out) = nullptr;
  void (*activate_vector)(const float* x, float* out, int n, Activation activation) = nullptr;
  // Nothing but products in registers, 3x3 convolutions' ones: what a core can do at most. Returns
  // how many multiplications with additions it did in `n` rounds.
  double (*peak)(long n) = nullptr;
};

bool cpu_supports(CpuLevel level, Arithmetic arithmetic = Arithmetic::Fp32);
CpuLevel best_cpu_level();
// Precondition: cpu_supports(level, arithmetic).
const CpuKernels& cpu_kernels(CpuLevel level, Arithmetic arithmetic = Arithmetic::Fp32);

// Bytes a position of what `prepare` makes, for chunks of up to `positions`.
std::size_t prepared_bytes(const CpuKernels& kernels, ConvMethod method, int in_channels,
                           int positions);
// Floats of ConvArgs::scratch for a chunk.
std::size_t scratch_floats(const CpuKernels& kernels, int positions);

// Weights of a convolution [out][in][k][k] in the order and format that the kernels read.
struct PackedConv {
  std::vector<std::uint32_t> words;
  std::vector<float> scale;  // Int8: [pad(out)] what a unit of a channel's weights is worth
};
PackedConv pack_conv(const CpuKernels& kernels, ConvMethod method, std::span<const float> weights,
                     int out_channels, int in_channels, int kernel);

// Weights of a 3x3 convolution [out][in][3][3] for CpuKernels::stem: [out block][in][18][block],
// the nine taps, and the nine sums of those taps that fall on the board from a square on its first,
// a middle or its last rank and file.
std::vector<float> pack_stem(const CpuKernels& kernels, std::span<const float> weights,
                             int out_channels, int in_channels);

// The nearest bfloat16, ties to even.
std::uint16_t bfloat16_from_float(float x);

}  // namespace tahl::nn
