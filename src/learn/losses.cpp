#include "learn/losses.h"

#include <torch/nn/functional.h>

#include <limits>

namespace tahl::learn {

namespace F = torch::nn::functional;

torch::Tensor move_logits(const torch::Tensor& outputs, const Batch& batch) {
  const auto gathered = outputs.to(torch::kFloat).gather(1, batch.terms).view(batch.signs.sizes());
  return (gathered * batch.signs)
      .sum(2)
      .masked_fill(batch.absent, -std::numeric_limits<float>::infinity());
}

Losses losses(const torch::Tensor& outputs, const torch::Tensor& values, const Batch& batch,
              double value_weight) {
  Losses l;
  l.logits = move_logits(outputs, batch);
  l.policy = F::cross_entropy(l.logits, batch.target);
  l.value = F::mse_loss(values.to(torch::kFloat), batch.value);
  l.total = l.policy + value_weight * l.value;
  return l;
}

std::int64_t hits(const torch::Tensor& logits, const torch::Tensor& target, std::int64_t k) {
  const auto chosen = logits.gather(1, target.unsqueeze(1));
  // Moves that are strictly more likely, so ties do not depend on an order.
  return (logits > chosen).sum(1).lt(k).sum().item<std::int64_t>();
}

}  // namespace tahl::learn
