#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "chess/error.h"
#include "nn/arch.h"

namespace tahl::nn {

struct NetFile;

// What a network is, apart from its weights.
struct NetInfo {
  ArchConfig arch;
  std::string encoding;                         // of its input: "rdt19"
  int input_planes = 0;                         // 64 floats each
  int policy_outputs = 0;                       // see arch.policy_head, policy_map.h
  int value_outputs = 1;                        // 1: expected result; 3: win, draw, loss
  std::map<std::string, std::string> metadata;  // training run, data, title: free text
  std::string arithmetic;                       // for people: how it is computed here
  double macs = 0;  // multiplications with additions of a position, as the net is written
};

// How to compute. Auto is the fastest that was shown to agree with fp32 (docs/inference.md).
enum class Precision : std::uint8_t { Auto, Fp32, Bf16, Int8 };
std::string_view to_string(Precision precision);  // "auto", "fp32", "bf16", "int8"
Expected<Precision> parse_precision(std::string_view name);

struct NetworkOptions {
  Precision precision = Precision::Auto;
  int threads = 1;  // that one forward() keeps busy, the caller's included; at most one a processor
};

// The policy outputs that are wanted of each position: those of position i are
// outputs[begin[i] .. begin[i + 1]]. Empty: all of them.
struct WantedOutputs {
  std::span<const std::uint16_t> outputs;
  std::span<const std::uint32_t> begin;  // n + 1, or empty
};

// Tensors in, tensors out: nothing below this line knows chess.
class Network {
 public:
  virtual ~Network() = default;

  virtual const NetInfo& info() const = 0;

  // One pass for `n` positions: planes [n][input_planes][64] -> policy logits [n][policy_outputs],
  // of which those that are not wanted may hold anything, and values [n][value_outputs], from the
  // mover's side: a result in [-1, 1], or the probabilities of win, draw and loss. Preconditions:
  // n >= 0 and the spans have these sizes. One thread at a time for each object: clone() one a
  // thread.
  virtual void forward(std::span<const float> planes, int n, const WantedOutputs& wanted,
                       std::span<float> policy, std::span<float> value) = 0;
  void forward(std::span<const float> planes, int n, std::span<float> policy,
               std::span<float> value) {
    forward(planes, n, {}, policy, value);
  }

  // A second network on the same weights (shared, not copied) for another thread.
  virtual std::unique_ptr<Network> clone() const = 0;
};

// The network as `tahl` runs it: on the CPU, with the widest vectors the processor has.
Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net,
                                                    const NetworkOptions& options = {});
// From a file or bytes that read_net() takes; `name` is for messages.
Expected<std::unique_ptr<Network>> load_cpu_network(const std::filesystem::path& path,
                                                    const NetworkOptions& options = {});
Expected<std::unique_ptr<Network>> load_cpu_network(std::span<const std::uint8_t> bytes,
                                                    const std::string& name,
                                                    const NetworkOptions& options = {});

}  // namespace tahl::nn
