#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chess/error.h"

namespace tahl::nn {

// Which network to build: everything its parameter list and its arithmetic depend on.
struct ArchConfig {
  std::string family = "rdt";            // the function that describes it: arch_FAMILY.h
  int input_planes = 19;                 // of the encoding
  int channels = 64;                     // width of the tower
  int blocks = 6;                        // residual blocks of two 3x3 convolutions
  int recurrence = 1;                    // the tower is applied this often with the same weights
  bool gate = false;                     // each pass through the tower is gated (RDTChess2)
  bool se = false;                       // squeeze-and-excitation in every block
  int se_reduction = 4;                  // hidden width of squeeze-and-excitation: channels / this,
  int se_width = 0;                      // unless this is not zero: then this
  std::string policy_head = "planes12";  // or another of policy_map.h
  int policy_channels = 0;               // before the policy's outputs; 0: see policy_channels()
  int policy_width = 64;                 // of the queries and keys of attention4288
  int value_channels = 16;               // 1x1 before the value's layers
  int value_hidden = 128;                // width between the value's two layers
  bool wdl = false;                      // the value is win, draw, loss; else one number
  std::string activation = "relu";       // or "mish"

  bool operator==(const ArchConfig&) const = default;
};

// The nets of the RDTChess card: 10,915,809 and 11,049,313 parameters.
ArchConfig rdtchess_config();
ArchConfig rdtchess2_config();

// Nothing, or one line about the first field that makes no sense or would need absurd memory.
Expected<void> validate(const ArchConfig& config);

// A JSON object of all fields; reading takes missing ones as their defaults and refuses unknown
// ones. Reading validates too.
std::string to_json(const ArchConfig& config);
Expected<ArchConfig> arch_from_json(std::string_view text);

int policy_outputs(const ArchConfig& config);  // as its head has them: policy_map.h
int value_outputs(const ArchConfig& config);   // 3 (win, draw, loss) or 1
// Of the 1x1 convolution before fromto4096 (0 in the config: 32) and moves1858 (32), of the 3x3
// before planes12 (`channels`), of the squares' vectors before attention4288 (`channels`); planes73
// has no such layer.
int policy_channels(const ArchConfig& config);
int se_hidden(const ArchConfig& config);

// What a tensor of a network is: decides how it starts and whether the optimiser moves it.
enum class ParameterKind : std::uint8_t {
  Weight,       // of a convolution [out][in][k][k] or a linear layer [out][in]
  Bias,         // [out]
  NormWeight,   // of a batch norm, [channels]
  NormBias,     //
  RunningMean,  // batch norm's statistics, not counted as parameters
  RunningVar,
};

struct ParameterSpec {
  std::string name;  // as in PyTorch's state_dict
  std::vector<std::int64_t> shape;
  ParameterKind kind = ParameterKind::Weight;
  std::int64_t fan_in = 1;  // Weight and Bias start uniform in +-1/sqrt(fan_in), as in PyTorch,
  float start = 0;          // unless this is not zero: then there (norms: 1 or 0)

  bool is_statistic() const {
    return kind == ParameterKind::RunningMean || kind == ParameterKind::RunningVar;
  }
  std::size_t size() const;
};

// Every tensor of the network in the order it is first used. Precondition: the config is valid.
std::vector<ParameterSpec> list_parameters(const ArchConfig& config);
// Floats an optimiser may change, batch norm's running statistics left out.
std::size_t parameter_count(const ArchConfig& config);

// Batch norm as PyTorch's default.
inline constexpr float kBatchNormEpsilon = 1e-5f;

}  // namespace tahl::nn
