#pragma once

namespace tahl::nn {

// An architecture is written once, as a function template over the operations below, and three
// interpreters run it: the parameter lister (arch.cpp), the CPU compiler (cpu_program.cpp) and
// LibTorch (torch_network.cpp). A `Value` is either a board, [channels][8][8], or a vector,
// [channels], of every position in the batch. Names are those of PyTorch's state_dict; using a name
// twice uses the same weights twice.
//
//   Value input()                          the encoding's planes
//   Value conv(name, board, ConvOptions)   3x3 (zeros beyond the edge) or 1x1; NAME.weight, .bias
//   Value batch_norm(name, board)          NAME.weight, .bias, .running_mean, .running_var
//   Value linear(name, vector, out)        NAME.weight, .bias
//   Value relu(x), sigmoid(x), tanh(x), mish(x), selu(x), add(x, y)
//   Value softmax(vector)
//   Value mean_pool(board)                 vector of the channels' means over the 64 squares
//   Value flatten(board)                   vector, index channel * 64 + square
//   Value concat(board, board)             along the channels
//   Value scale_bias(board, vector of 2c)  sigmoid(first half) * board + second half
//   Value mix(z, a, b)                     z * a + (1 - z) * b, all boards of one shape
//   Value attention_policy(name, queries, keys)
//                                          two boards of c channels; NAME.weight [4][c]; vector of
//                                          4288: arch_lc0.h has the formula
//
// mish(x) = x tanh(log(1 + exp(x))); selu(x) = s x for x > 0, else s a (exp(x) - 1), with the
// numbers below.
inline constexpr float kSeluScale = 1.05070098f, kSeluAlpha = 1.67326324f;

struct ConvOptions {
  int out = 0;
  int kernel = 3;
  bool bias = false;
  float bias_start = 0;  // not zero: where the bias starts in training
};

// Policy: a vector of policy_outputs(config); value: a vector of one, in [-1, 1], or of the
// probabilities of win, draw and loss.
template <class Value>
struct NetworkOutputs {
  Value policy{};
  Value value{};
};

}  // namespace tahl::nn
