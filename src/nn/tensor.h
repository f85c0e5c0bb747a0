#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tahl::nn {

// Numbers with a shape, row-major, as files hold them. Invariant: data.size() is the product of the
// shape's sides.
struct TensorData {
  std::vector<std::int64_t> shape;
  std::vector<float> data;
};

using TensorMap = std::map<std::string, TensorData>;

// "[64, 19, 3, 3]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

// The value of an IEEE half, and of the upper half of a float.
inline float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {  // zero and the subnormals, multiples of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}
inline float float_from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The nearest half and bfloat16, ties to even; what is too large becomes infinite.
inline std::uint16_t half_from_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const auto half = [&](std::uint32_t rest) { return static_cast<std::uint16_t>(sign | rest); };
  if (magnitude > 0x7f800000) return half(0x7e00);   // not a number
  if (magnitude >= 0x477ff000) return half(0x7c00);  // 65520 and more
  if (magnitude < 0x38800000) {  // below 2^-14: multiples of 2^-24, rounded by a float's addition
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return half(std::bit_cast<std::uint32_t>(shifted) - 0x3f000000);
  }
  return half((magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13);
}
inline std::uint16_t bfloat16_from_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace tahl::nn
