#pragma once

namespace tahl::nn {

// Operations of the CPU network that only lc0's nets need, in plain C++. Boards and vectors lie as
// cpu_kernels.h says; arch_ops.h and arch_lc0.h have the formulas.
inline constexpr int kAttentionOutputs = 64 * 64 + 8 * 24;

void softmax(const float* x, int channels, int positions, float* out);
// `promotions` is [4][channels].
void attention_policy(const float* queries, const float* keys, const float* promotions,
                      int channels, int positions, float* out);

}  // namespace tahl::nn
