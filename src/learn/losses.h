#pragma once

#include <torch/types.h>

#include "learn/dataset.h"

namespace tahl::learn {

// Logits of the legal moves [n][L]: each the signed sum of its outputs, and -infinity where there
// is no move. `outputs` is [n][policy_outputs].
torch::Tensor move_logits(const torch::Tensor& outputs, const Batch& batch);

struct Losses {
  torch::Tensor total;   // policy + value_weight * value
  torch::Tensor policy;  // mean cross-entropy of the move played, over the legal moves only
  torch::Tensor value;   // mean squared error of the result for the side to move
  torch::Tensor logits;  // [n][L]
};
Losses losses(const torch::Tensor& outputs, const torch::Tensor& values, const Batch& batch,
              double value_weight);

// How many of the moves played are among the `k` most likely ones.
std::int64_t hits(const torch::Tensor& logits, const torch::Tensor& target, std::int64_t k);

}  // namespace tahl::learn
