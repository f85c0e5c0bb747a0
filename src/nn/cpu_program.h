#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nn/cpu_kernels.h"
#include "nn/cpu_memory.h"
#include "nn/net_file.h"

namespace tahl::nn {

// A network compiled for the CPU: steps in order, each writing one slot of a workspace. Batch norms
// are folded into the convolutions before them, and activations and sums into whatever makes their
// operand, so most steps are whole layers.
struct CpuStep {
  enum class Kind : std::uint8_t {
    Input,      // planes -> board
    Stem,       // planes -> board, by the first 3x3 convolution; with activation
    Prepare,    // board -> what the next Conv3 reads (CpuKernels::prepare_*)
    Conv3,      // 3x3; with activation and residual
    Conv1,      // 1x1; the same
    Linear,     // with activation
    Rows,       // the same without, its rows one by one: a policy of which few are wanted
    Points,     // the same of a last 3x3 convolution: its results one by one
    Pool,       // board -> vector of means
    Flatten,    // board -> vector [square][pad(channels)]
    Concat,     // two boards
    ScaleBias,  // board, vector; with activation and residual
    Mix,        // three boards
    Add,        // two alike
    Activate,
    Softmax,          // of a vector
    AttentionPolicy,  // vectors of queries and keys; `scale` has its weights [4][channels]
  };
  Kind kind{};
  std::vector<int> inputs;  // steps
  int residual = -1;        // a step, or none
  int channels = 0;         // of the result; of what is prepared
  bool is_board = true;
  Activation activation = Activation::None;
  std::string name;         // of the weights
  std::size_t weights = 0;  // where in the program's memory, packed
  bool is_half = false;     // of a Linear or Rows: its weights are bfloat16
  std::vector<float> bias, scale;
  float prepare_scale = 1;  // PrepareArgs::scale
  std::size_t size = 0;     // floats of a vector, a position
  int slot = -1;            // where the result lies; what is prepared lies with each thread
  bool barrier = false;     // threads that share the channels must have come as far as here
};

struct CpuProgram {
  const CpuKernels* kernels = nullptr;
  ConvMethod method{};
  int chunk = 0;  // positions that pass a layer together
  std::vector<CpuStep> steps;
  CpuBytes weights;                // of all steps
  std::vector<std::size_t> slots;  // bytes of each slot of the workspace
  std::size_t scratch = 0;         // floats of each thread's own
  std::size_t prepared = 0;        // bytes, too
  double macs = 0;  // multiplications with additions a position, every convolution as written
  int policy = 0, value = 0;  // steps whose results are the outputs
};

// The largest input of each of int8_layers() that bytes can express.
using Int8Ranges = std::map<std::string, float>;

// The convolutions that Int8 computes in bytes: all 3x3 ones but the first and a policy's last.
std::vector<std::string> int8_layers(const ArchConfig& arch);

// Preconditions: check_tensors(net) has passed, and for Int8 `ranges` has all int8_layers().
CpuProgram compile_for_cpu(const NetFile& net, const CpuKernels& kernels, ConvMethod method,
                           const Int8Ranges& ranges = {});

}  // namespace tahl::nn
