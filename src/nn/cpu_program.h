#pragma once

#include <cstddef>
#include <vector>

#include "nn/cpu_kernels.h"
#include "nn/net_file.h"

namespace tahl::nn {

// A network compiled for the CPU: steps in order, each writing one slot of a workspace. Batch norms
// are folded into the convolutions before them, and activations and sums into whatever makes their
// operand, so most steps are whole layers.
struct CpuStep {
  enum class Kind {
    Input,      // planes -> board
    Conv,       // with activation and residual
    Linear,     // with activation
    Pool,       // board -> vector of means
    Flatten,    // board -> vector by channels, as PyTorch
    Concat,     // two boards
    ScaleBias,  // board, vector; with activation and residual
    Mix,        // three boards
    Add,        // two alike
    Activate,
    Mish,  // the rest are plain functions of cpu_ops.h
    Selu,
    Softmax,
    AttentionPolicy,  // boards of queries and keys; weights [4][channels]
  };
  Kind kind{};
  std::vector<int> inputs;  // steps
  int residual = -1;        // a step, or none
  int channels = 0;         // of the result
  bool is_board = true;
  int kernel = 0;  // of a Conv
  Activation activation = Activation::None;
  std::vector<float> weights, bias;
  int slot = -1;  // where the result lies
  // Floats of the result, a position.
  std::size_t size() const {
    return static_cast<std::size_t>(pad(channels)) * (is_board ? 64u : 1u);
  }
};

struct CpuProgram {
  const CpuKernels* kernels = nullptr;
  std::vector<CpuStep> steps;
  std::vector<std::size_t> slots;  // floats a position of each slot of the workspace
  int policy = 0, value = 0;       // steps whose results are the outputs
};

// Precondition: check_tensors(net) has passed.
CpuProgram compile_for_cpu(const NetFile& net, const CpuKernels& kernels);

}  // namespace tahl::nn
