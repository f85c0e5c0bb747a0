#pragma once

#include <fmt/format.h>

#include "nn/arch.h"
#include "nn/arch_ops.h"

namespace tahl::nn {

// The convolutional nets of Leela Chess Zero, Maia among them. Batch norms are in the convolutions,
// which have biases instead: lc0_file.cpp folds them when it reads. `act` is relu or mish.
//
//   stem   act(3x3 convolution)
//   block  act(x + se(conv(act(conv(x)))))
//   value  act(1x1 convolution), act(linear), linear, then tanh of one or softmax of three
//
// and one of three policies:
//
//   moves1858      act(1x1 convolution), linear
//   planes73       act(3x3 convolution), 3x3 convolution to 73 planes
//   attention4288  every square has a vector selu(1x1 convolution), of which two more 1x1
//                  convolutions make a query q and a key k, of d channels. From square a to square
//                  b the output is q[a] . k[b] / sqrt(d). Promotions from the seventh rank's file f
//                  to the eighth's file g are the same number (a knight) plus (w[3] + w[i]) . k[b]
//                  for i = queen, rook, bishop: outputs 4096 + 24 f + 3 g + i.
template <class Ops>
NetworkOutputs<typename Ops::Value> lc0(const ArchConfig& config, Ops& ops) {
  using Value = typename Ops::Value;

  const auto act = [&](Value x) { return config.activation == "mish" ? ops.mish(x) : ops.relu(x); };
  const auto conv = [&](const std::string& name, Value x, int out, int kernel) {
    return ops.conv(name, x, {.out = out, .kernel = kernel, .bias = true});
  };
  const auto squeeze_excite = [&](const std::string& name, Value x) {
    Value hidden = act(ops.linear(name + ".fc1", ops.mean_pool(x), se_hidden(config)));
    return ops.scale_bias(x, ops.linear(name + ".fc2", hidden, 2 * config.channels));
  };

  Value state = act(conv("stem", ops.input(), config.channels, 3));
  for (int i = 0; i < config.blocks; ++i) {
    const std::string name = fmt::format("tower.{}", i);
    Value y = act(conv(name + ".conv1", state, config.channels, 3));
    y = conv(name + ".conv2", y, config.channels, 3);
    if (config.se) y = squeeze_excite(name + ".se", y);
    state = act(ops.add(y, state));
  }

  NetworkOutputs<Value> outputs;
  if (config.policy_head == "moves1858") {
    Value policy = act(conv("policy_conv", state, policy_channels(config), 1));
    outputs.policy = ops.linear("policy_fc", ops.flatten(policy), 1858);
  } else if (config.policy_head == "planes73") {
    Value policy = act(conv("policy_conv", state, config.channels, 3));
    outputs.policy = ops.flatten(conv("policy_planes", policy, 73, 3));
  } else {
    Value squares = ops.selu(conv("policy_conv", state, policy_channels(config), 1));
    Value queries = conv("policy_queries", squares, config.policy_width, 1);
    Value keys = conv("policy_keys", squares, config.policy_width, 1);
    outputs.policy = ops.attention_policy("policy_promotions", queries, keys);
  }
  Value value = act(conv("value_conv", state, config.value_channels, 1));
  value = act(ops.linear("value_fc1", ops.flatten(value), config.value_hidden));
  value = ops.linear("value_fc2", value, config.wdl ? 3 : 1);
  outputs.value = config.wdl ? ops.softmax(value) : ops.tanh(value);
  return outputs;
}

}  // namespace tahl::nn
