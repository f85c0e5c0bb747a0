#pragma once

#include <memory>

#include "nn/cpu_kernels.h"
#include "nn/net_file.h"
#include "nn/network.h"

namespace tahl::nn {

// make_cpu_network() with a chosen instruction set, for tests and benchmarks.
// Precondition: cpu_supports(level).
Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net,
                                                    const NetworkOptions& options, CpuLevel level);

}  // namespace tahl::nn
