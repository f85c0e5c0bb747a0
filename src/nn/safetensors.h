#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chess/error.h"
#include "nn/tensor.h"

namespace tahl::nn {

// The safetensors format (huggingface.co/docs/safetensors): u64 length of a JSON header, the header
// with each tensor's type, shape and place, then the numbers, little-endian.
struct Safetensors {
  std::map<std::string, std::string> metadata;
  TensorMap tensors;
};

// Reads f32, f16 and bf16 into floats. The tensors must fill the file exactly once, as the format
// demands; so memory stays within twice the file's size. Errors name no file.
Expected<Safetensors> parse_safetensors(std::span<const std::uint8_t> bytes);
// Whether the bytes begin like one: a plausible length and a brace.
bool looks_like_safetensors(std::span<const std::uint8_t> bytes);

enum class NumberType : std::uint8_t { F32, F16, BF16 };

// Tensors of one dimension or none as f32, the others as `type`; in the order of the names, but
// those of four bytes first. What is too large for a half becomes infinite.
std::vector<std::uint8_t> write_safetensors(const Safetensors& contents,
                                            NumberType type = NumberType::F32);
// The types in a file's header: "f32", "f16 f32". Precondition: parse_safetensors takes the file.
std::string safetensors_types(std::span<const std::uint8_t> bytes);

}  // namespace tahl::nn
