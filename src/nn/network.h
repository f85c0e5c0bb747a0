#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "chess/error.h"
#include "nn/arch.h"

namespace tahl::nn {

struct NetFile;

// What a network is, apart from its weights.
struct NetInfo {
  ArchConfig arch;
  std::string encoding;                         // of its input: "rdt19"
  int input_planes = 0;                         // 64 floats each
  int policy_outputs = 0;                       // 4096 or 768: see arch.policy_head, policy_map.h
  std::map<std::string, std::string> metadata;  // training run, data, title: free text
};

// Tensors in, tensors out: nothing below this line knows chess.
class Network {
 public:
  virtual ~Network() = default;

  virtual const NetInfo& info() const = 0;

  // One pass for `n` positions: planes [n][input_planes][64] -> policy logits [n][policy_outputs]
  // and values [n] in [-1, 1], both from the mover's side. Preconditions: n >= 0 and the spans have
  // these sizes. One thread at a time for each object: clone() one a thread.
  virtual void forward(std::span<const float> planes, int n, std::span<float> policy,
                       std::span<float> value) = 0;

  // A second network on the same weights (shared, not copied) for another thread.
  virtual std::unique_ptr<Network> clone() const = 0;
};

// The network as `tahl` runs it: fp32, on the calling thread, with the widest vectors the processor
// has. Memory beside the weights: some hundred kilobytes.
Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net);
// From a file or bytes that read_net() takes; `name` is for messages.
Expected<std::unique_ptr<Network>> load_cpu_network(const std::filesystem::path& path);
Expected<std::unique_ptr<Network>> load_cpu_network(std::span<const std::uint8_t> bytes,
                                                    const std::string& name);

}  // namespace tahl::nn
