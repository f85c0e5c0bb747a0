#include "nn/cpu_ops.h"

#include <algorithm>
#include <cmath>

#include "nn/cpu_kernels.h"

namespace tahl::nn {
namespace {

// Several sums at once: the compiler may not reorder one, but it may make vectors of these.
float dot(const float* a, const float* b, int n) {
  constexpr int kSums = 16;
  float sums[kSums] = {};
  int i = 0;
  for (; i + kSums <= n; i += kSums)
    for (int k = 0; k < kSums; ++k) sums[k] += a[i + k] * b[i + k];
  float rest = 0;
  for (; i < n; ++i) rest += a[i] * b[i];
  for (const float sum : sums) rest += sum;
  return rest;
}

}  // namespace

void softmax(const float* x, int channels, int positions, float* out) {
  const int stride = pad(channels);
  for (int p = 0; p < positions; ++p, x += stride, out += stride) {
    const float largest = *std::max_element(x, x + channels);
    float sum = 0;
    for (int c = 0; c < channels; ++c) sum += out[c] = std::exp(x[c] - largest);
    for (int c = 0; c < channels; ++c) out[c] /= sum;
    std::fill(out + channels, out + stride, 0.f);
  }
}

void attention_policy(const float* queries, const float* keys, const float* promotions,
                      int channels, int positions, float* out) {
  const int stride = pad(channels);
  const float scale = 1 / std::sqrt(static_cast<float>(channels));
  for (int p = 0; p < positions; ++p) {
    for (int from = 0; from < 64; ++from)
      for (int to = 0; to < 64; ++to)
        out[from * 64 + to] = scale * dot(queries + from * stride, keys + to * stride, channels);
    for (int to = 0; to < 8; ++to) {
      const float* const key = keys + (56 + to) * stride;
      const float all = dot(promotions + 3 * channels, key, channels);
      for (int piece = 0; piece < 3; ++piece) {
        const float offset = all + dot(promotions + piece * channels, key, channels);
        for (int from = 0; from < 8; ++from)
          out[4096 + 24 * from + 3 * to + piece] = out[(48 + from) * 64 + 56 + to] + offset;
      }
    }
    queries += 64 * stride;
    keys += 64 * stride;
    out += pad(kAttentionOutputs);
  }
}

}  // namespace tahl::nn
