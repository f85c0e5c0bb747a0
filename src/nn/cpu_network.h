#pragma once

#include <memory>

#include "nn/cpu_kernels.h"
#include "nn/cpu_program.h"
#include "nn/net_file.h"
#include "nn/network.h"

namespace tahl::nn {

// How a CPU network computes, for tests and benchmarks; make_cpu_network() chooses.
struct CpuConfig {
  CpuLevel level = best_cpu_level();
  Arithmetic arithmetic = Arithmetic::Fp32;
  ConvMethod method = ConvMethod::Winograd;  // Int8 has Direct alone
  int threads = 1;
};

// Preconditions: cpu_supports(level, arithmetic). An error too for Int8 where the net was not
// calibrated.
Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net, const CpuConfig& config);

// The share of positions, "0.9912", in which the first choice is that of fp32, as `tahl net
// quantize` measures it and writes it into the net's metadata.
inline constexpr char kBf16Agreement[] = "bf16_top1", kInt8Agreement[] = "int8_top1";

// What make_cpu_network() takes for a precision, or why it cannot. Auto asks the two numbers above:
// bf16 if it agrees in 99 %, else int8 if in 98 %, else fp32.
Expected<CpuConfig> choose_cpu_config(const NetFile& net, const NetworkOptions& options);

// The range that bytes should express of every 3x3 convolution's input, from planes of n positions
// that are like those to come: it minimises the squared error of rounding and cutting off. An error
// if an input is negative somewhere, which these bytes cannot express.
Expected<Int8Ranges> calibrate_int8(const NetFile& net, std::span<const float> planes, int n);
// As the net's file keeps them, in its metadata under "int8_ranges".
std::string to_json(const Int8Ranges& ranges);
Expected<Int8Ranges> int8_ranges(const NetFile& net);

}  // namespace tahl::nn
