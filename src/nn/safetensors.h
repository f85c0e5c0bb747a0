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

// All as f32, in the order of the names.
std::vector<std::uint8_t> write_safetensors(const Safetensors& contents);

}  // namespace tahl::nn
