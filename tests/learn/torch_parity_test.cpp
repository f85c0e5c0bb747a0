#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "nn/network.h"
#include "nn/torch_network.h"
#include "tests/nn/net_testing.h"

namespace tahl::nn {
namespace {

TEST(TorchNetwork, ComputesWhatTheCpuNetworkComputes) {
  std::vector<ArchConfig> configs = testing::varied_configs();
  configs.push_back(rdtchess_config());
  configs.push_back(rdtchess2_config());
  configs.push_back({.channels = 64, .blocks = 6, .se = true});
  for (const ArchConfig& config : configs) {
    SCOPED_TRACE(to_json(config));
    const NetFile net = testing::random_net(config, 1);
    auto cpu = make_cpu_network(net, NetworkOptions{.precision = Precision::Fp32});
    auto torch = make_torch_network(net);
    ASSERT_TRUE(cpu) << cpu.error().message;
    ASSERT_TRUE(torch) << torch.error().message;
    constexpr int kPositions = 9;
    const auto planes = testing::random_planes(kPositions, config.input_planes, 2);
    std::vector<float> cpu_policy(static_cast<std::size_t>(kPositions * policy_outputs(config)));
    std::vector<float> cpu_value(static_cast<std::size_t>(kPositions * value_outputs(config))),
        torch_policy(cpu_policy.size()), torch_value(cpu_value.size());
    (*cpu)->forward(planes, kPositions, cpu_policy, cpu_value);
    (*torch)->forward(planes, kPositions, torch_policy, torch_value);
    for (std::size_t i = 0; i < cpu_policy.size(); ++i) {
      ASSERT_NEAR(cpu_policy[i], torch_policy[i], 1e-4) << i;
    }
    for (std::size_t i = 0; i < cpu_value.size(); ++i)
      ASSERT_NEAR(cpu_value[i], torch_value[i], 1e-4);
  }
}

TEST(TorchNetwork, CountsTheSameParameters) {
  for (const ArchConfig& config : {rdtchess_config(), rdtchess2_config()}) {
    const TorchNetwork network(config);
    std::int64_t count = 0;
    for (const auto& parameter : network.parameters()) count += parameter.numel();
    EXPECT_EQ(static_cast<std::size_t>(count), parameter_count(config));
  }
}

TEST(TorchNetwork, ExportsWhatItImported) {
  const NetFile net = testing::random_net(testing::varied_configs()[2], 3);
  TorchNetwork network(net.arch);
  ASSERT_TRUE(import_net(net, network));
  const NetFile again = export_net(network, net.encoding, net.metadata);
  EXPECT_EQ(to_bytes(again), to_bytes(net));
}

TEST(TorchNetwork, RefusesTheWeightsOfAnotherArchitecture) {
  TorchNetwork network(testing::varied_configs()[0]);
  EXPECT_FALSE(import_net(testing::random_net(testing::varied_configs()[1], 1), network));
}

// sigmoid(-2): the gate lets an eighth of each pass through at first.
TEST(TorchNetwork, GateStartsNearlyClosed) {
  TorchNetwork network(testing::varied_configs()[2]);
  EXPECT_TRUE(torch::all(network.tensor("gate.bias") == -2).item<bool>());
}

// The bound of PyTorch's Conv2d and Linear: 1 / sqrt(fan in).
TEST(TorchNetwork, StartsAsPyTorchLayersDo) {
  torch::manual_seed(1);
  TorchNetwork network({.channels = 64, .blocks = 1});
  const float largest = network.tensor("tower.0.conv1.weight").abs().max().item<float>();
  const float bound = 1 / std::sqrt(64.f * 9);
  EXPECT_LE(largest, bound);
  EXPECT_GT(largest, 0.99f * bound);
  EXPECT_EQ(network.tensor("tower.0.bn1.weight").min().item<float>(), 1);
}

TEST(TorchNetwork, TrainingMovesEveryParameterAndStatistic) {
  torch::manual_seed(2);
  TorchNetwork network(testing::varied_configs()[2]);
  const NetFile before = export_net(network, "rdt19", {});
  network.train();
  torch::optim::SGD optimiser(network.parameters(), 0.1);
  const auto [policy, value] = network.forward(torch::rand({4, 19, 8, 8}));
  (policy.square().mean() + value.square().mean()).backward();
  optimiser.step();
  const NetFile after = export_net(network, "rdt19", {});
  for (const auto& [name, tensor] : before.tensors) {
    EXPECT_NE(after.tensors.at(name).data, tensor.data) << name;
  }
}

}  // namespace
}  // namespace tahl::nn
