#pragma once

#include "nn/arch_lc0.h"
#include "nn/arch_rdt.h"

namespace tahl::nn {

// Runs the architecture that `config` names. validate() has refused unknown families, so the table
// of architectures is here and in arch.cpp.
template <class Ops>
NetworkOutputs<typename Ops::Value> run_architecture(const ArchConfig& config, Ops& ops) {
  return config.family == "lc0" ? lc0(config, ops) : rdt(config, ops);
}

}  // namespace tahl::nn
