#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "chess/error.h"
#include "nn/arch.h"
#include "nn/safetensors.h"
#include "nn/tensor.h"

namespace tahl::nn {

// A network at rest: what it is, where it comes from, and its weights under the names of
// list_parameters(arch). On disk it is a safetensors file whose metadata has `arch` (JSON),
// `encoding` and any other keys, so that any tool can open it.
struct NetFile {
  ArchConfig arch;
  std::string encoding = "rdt19";
  std::map<std::string, std::string> metadata;  // free: training run, data, title
  TensorMap tensors;
};

// A net whose weights are as training starts: every weight and bias uniform in +-1/sqrt(fan_in), as
// in PyTorch, norms neutral. For timing, where any weights will do.
NetFile fresh_net(const ArchConfig& arch, std::uint32_t seed = 1);

// Nothing if names and shapes are exactly those of the architecture; else one line on the first
// that is not. Numbers must be finite, and variances not negative.
Expected<void> check_tensors(const NetFile& net);

// Our safetensors (f32, f16 or bf16), an RDTChess checkpoint (.pt, a zip with a pickle that is read
// as data and never executed), or an lc0 net (.pb.gz); the contents decide. Errors are "net: NAME:
// reason".
Expected<NetFile> read_net(const std::filesystem::path& path);
Expected<NetFile> read_net(std::span<const std::uint8_t> bytes, const std::string& name);

// The file's bytes: the same net gives the same bytes. Weights are stored as `type`, what has one
// dimension (biases, norms) always as f32.
std::vector<std::uint8_t> to_bytes(const NetFile& net, NumberType type = NumberType::F32);
// The bytes of an RDTChess checkpoint, which has no place for metadata. Refuses what RDTChess's
// plain network is not: other encodings and heads, recurrence, gate, squeeze-and-excitation, other
// widths of its heads. Errors name no file.
Expected<std::vector<std::uint8_t>> to_checkpoint(const NetFile& net);
// Writes beside `path` and renames, so that a reader sees the old file or the new one, whole.
Expected<void> write_net(const NetFile& net, const std::filesystem::path& path);
Expected<void> write_net(std::span<const std::uint8_t> bytes, const std::filesystem::path& path);

}  // namespace tahl::nn
