#pragma once

#include <fmt/format.h>

#include "nn/arch.h"
#include "nn/arch_ops.h"

namespace tahl::nn {

// The residual tower of RDTChess, with its successor's three additions as options and either
// policy head. Tensor names are RDTChess's own, so its checkpoints load as they are.
//
//   stem   3x3 convolution, norm, relu
//   block  relu(x + se(norm(conv(relu(norm(conv(x)))))))
//   pass   candidate = tower(state);  gated: z = sigmoid(W [candidate; state]),
//          state = z candidate + (1 - z) state
//   policy either 1x1 convolution, norm, relu, linear to 4096,
//          or 3x3 convolution, norm, relu, 1x1 convolution to twelve planes
//   value  1x1 convolution, norm, relu, linear, relu, linear, tanh
//
// The card of RDTChess2 names the gate and its start at sigmoid(-2), and the scale and bias of its
// squeeze-and-excitation; this reading comes to the card's 11.05 M parameters.
template <class Ops>
NetworkOutputs<typename Ops::Value> rdt(const ArchConfig& config, Ops& ops) {
  using Value = typename Ops::Value;

  const auto conv_norm = [&](const std::string& conv, const std::string& norm, Value x, int out,
                             int kernel) {
    return ops.batch_norm(norm, ops.conv(conv, x, {.out = out, .kernel = kernel}));
  };
  const auto squeeze_excite = [&](const std::string& name, Value x) {
    Value hidden = ops.relu(ops.linear(name + ".fc1", ops.mean_pool(x), se_hidden(config)));
    return ops.scale_bias(x, ops.linear(name + ".fc2", hidden, 2 * config.channels));
  };
  const auto block = [&](const std::string& name, Value x) {
    Value y = ops.relu(conv_norm(name + ".conv1", name + ".bn1", x, config.channels, 3));
    y = conv_norm(name + ".conv2", name + ".bn2", y, config.channels, 3);
    if (config.se) y = squeeze_excite(name + ".se", y);
    return ops.relu(ops.add(y, x));
  };

  Value state = ops.relu(conv_norm("stem.0", "stem.1", ops.input(), config.channels, 3));
  for (int pass = 0; pass < config.recurrence; ++pass) {
    Value candidate = state;
    for (int i = 0; i < config.blocks; ++i)
      candidate = block(fmt::format("tower.{}", i), candidate);
    if (config.gate) {
      Value z = ops.sigmoid(
          ops.conv("gate", ops.concat(candidate, state),
                   {.out = config.channels, .kernel = 1, .bias = true, .bias_start = -2}));
      state = ops.mix(z, candidate, state);
    } else {
      state = candidate;
    }
  }

  NetworkOutputs<Value> outputs;
  const int width = policy_channels(config);
  if (config.policy_head == "fromto4096") {
    Value policy = ops.relu(conv_norm("policy_conv", "policy_bn", state, width, 1));
    outputs.policy = ops.linear("policy_fc", ops.flatten(policy), 4096);
  } else {
    Value policy = ops.relu(conv_norm("policy_conv", "policy_bn", state, width, 3));
    policy = ops.conv("policy_planes", policy, {.out = 12, .kernel = 1, .bias = true});
    outputs.policy = ops.flatten(policy);
  }
  Value value = ops.relu(conv_norm("value_conv", "value_bn", state, config.value_channels, 1));
  value = ops.relu(ops.linear("value_fc1", ops.flatten(value), config.value_hidden));
  outputs.value = ops.tanh(ops.linear("value_fc2", value, 1));
  return outputs;
}

}  // namespace tahl::nn
