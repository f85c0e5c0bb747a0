#include "nn/cpu_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "chess/fen.h"
#include "chess/notation.h"
#include "nn/arch_run.h"
#include "nn/encoding.h"
#include "nn/policy_map.h"
#include "tests/nn/net_testing.h"
#include "tests/test_paths.h"

namespace tahl::nn {
namespace {

using testing::random_net;
using testing::random_planes;
using testing::varied_configs;

// The operations as their definitions read, in double and for one position: slow and plain.
class PlainOps {
 public:
  using Value = std::vector<double>;  // [channels][64] or [channels]

  PlainOps(const NetFile& net, std::span<const float> planes)
      : net_(net), input_(planes.begin(), planes.end()) {}

  Value input() { return input_; }
  Value conv(const std::string& name, const Value& x, const ConvOptions& options) {
    const auto& w = tensor(name + ".weight");
    const int in = static_cast<int>(x.size() / 64), k = options.kernel;
    Value y(static_cast<std::size_t>(options.out * 64));
    for (int o = 0; o < options.out; ++o) {
      for (int rank = 0; rank < 8; ++rank) {
        for (int file = 0; file < 8; ++file) {
          double sum = options.bias ? tensor(name + ".bias")[at(o)] : 0;
          for (int c = 0; c < in; ++c) {
            for (int dr = 0; dr < k; ++dr) {
              for (int df = 0; df < k; ++df) {
                const int r = rank + dr - k / 2, f = file + df - k / 2;
                if (r < 0 || r > 7 || f < 0 || f > 7) continue;
                sum += x[at(c * 64 + r * 8 + f)] * w[at(((o * in + c) * k + dr) * k + df)];
              }
            }
          }
          y[at(o * 64 + rank * 8 + file)] = sum;
        }
      }
    }
    return y;
  }
  Value batch_norm(const std::string& name, const Value& x) {
    Value y = x;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t c = i / 64;
      y[i] = (y[i] - tensor(name + ".running_mean")[c]) /
                 std::sqrt(tensor(name + ".running_var")[c] + 1e-5) * tensor(name + ".weight")[c] +
             tensor(name + ".bias")[c];
    }
    return y;
  }
  Value linear(const std::string& name, const Value& x, int out) {
    Value y(at(out));
    for (std::size_t o = 0; o < y.size(); ++o) {
      y[o] = tensor(name + ".bias")[o];
      for (std::size_t i = 0; i < x.size(); ++i)
        y[o] += tensor(name + ".weight")[o * x.size() + i] * x[i];
    }
    return y;
  }
  Value relu(Value x) {
    return each(std::move(x), [](double v) { return v > 0 ? v : 0; });
  }
  Value sigmoid(Value x) {
    return each(std::move(x), [](double v) { return 1 / (1 + std::exp(-v)); });
  }
  Value tanh(Value x) {
    return each(std::move(x), [](double v) { return std::tanh(v); });
  }
  Value mish(Value x) {
    return each(std::move(x), [](double v) { return v * std::tanh(std::log1p(std::exp(v))); });
  }
  Value selu(Value x) {
    return each(std::move(x), [](double v) {
      return 1.0507009873554805 * (v > 0 ? v : 1.6732632423543772 * (std::exp(v) - 1));
    });
  }
  Value softmax(Value x) {
    double sum = 0;
    for (const double v : x) sum += std::exp(v);
    return each(std::move(x), [sum](double v) { return std::exp(v) / sum; });
  }
  Value attention_policy(const std::string& name, const Value& queries, const Value& keys) {
    const auto& w = tensor(name + ".weight");
    const int channels = static_cast<int>(queries.size() / 64);
    const auto plain = [&](int from, int to) {
      double sum = 0;
      for (int c = 0; c < channels; ++c) sum += queries[at(c * 64 + from)] * keys[at(c * 64 + to)];
      return sum / std::sqrt(channels);
    };
    Value y;
    for (int from = 0; from < 64; ++from)
      for (int to = 0; to < 64; ++to) y.push_back(plain(from, to));
    for (int from = 48; from < 56; ++from) {
      for (int to = 56; to < 64; ++to) {
        for (int piece = 0; piece < 3; ++piece) {
          double offset = 0;
          for (int c = 0; c < channels; ++c)
            offset +=
                (w[at(piece * channels + c)] + w[at(3 * channels + c)]) * keys[at(c * 64 + to)];
          y.push_back(plain(from, to) + offset);
        }
      }
    }
    return y;
  }
  Value add(Value x, const Value& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
  }
  Value mean_pool(const Value& x) {
    Value y(x.size() / 64);
    for (std::size_t i = 0; i < x.size(); ++i) y[i / 64] += x[i] / 64;
    return y;
  }
  Value flatten(const Value& x) { return x; }
  Value concat(Value x, const Value& y) {
    x.insert(x.end(), y.begin(), y.end());
    return x;
  }
  Value scale_bias(Value x, const Value& both) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] / (1 + std::exp(-both[i / 64])) + both[both.size() / 2 + i / 64];
    }
    return x;
  }
  Value mix(const Value& z, const Value& a, const Value& b) {
    Value y(z.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = z[i] * a[i] + (1 - z[i]) * b[i];
    return y;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const std::vector<float>& tensor(const std::string& name) { return net_.tensors.at(name).data; }
  template <class Function>
  static Value each(Value x, Function function) {
    for (double& v : x) v = function(v);
    return x;
  }

  const NetFile& net_;
  Value input_;
};

struct Outputs {
  std::vector<float> policy, value;
};
Outputs run(Network& network, std::span<const float> planes, int n) {
  Outputs outputs{std::vector<float>(static_cast<std::size_t>(n * network.info().policy_outputs)),
                  std::vector<float>(static_cast<std::size_t>(n * network.info().value_outputs))};
  network.forward(planes, n, outputs.policy, outputs.value);
  return outputs;
}

// Every way of computing that this processor has.
std::vector<CpuConfig> cpu_configs() {
  std::vector<CpuConfig> configs;
  for (const CpuLevel level : {CpuLevel::Baseline, CpuLevel::Avx2, CpuLevel::Avx512}) {
    for (const Arithmetic arithmetic : {Arithmetic::Fp32, Arithmetic::Bf16, Arithmetic::Int8}) {
      if (!cpu_supports(level, arithmetic)) continue;
      for (const ConvMethod method : {ConvMethod::Direct, ConvMethod::Winograd}) {
        if (arithmetic == Arithmetic::Int8 && method == ConvMethod::Winograd) continue;
        for (const int threads : {1, 2, 3}) configs.push_back({level, arithmetic, method, threads});
      }
    }
  }
  return configs;
}

// The largest difference that a way of computing may make to an output.
double tolerance(const CpuConfig& config, double want) {
  return (1 + std::abs(want)) * (config.arithmetic == Arithmetic::Fp32 ? 1e-5 : 0.1);
}

TEST(CpuNetwork, EveryWayOfComputingComputesTheDefinition) {
  for (const ArchConfig& arch : varied_configs()) {
    NetFile net = random_net(arch, 5);
    const auto planes = random_planes(3, arch.input_planes, 6);
    const auto ranges = calibrate_int8(net, planes, 3);
    ASSERT_EQ(ranges.has_value(), arch.activation != "mish");  // mish has negative results
    if (ranges) net.metadata["int8_ranges"] = to_json(*ranges);
    const std::size_t size = static_cast<std::size_t>(arch.input_planes) * 64;
    for (const CpuConfig& config : cpu_configs()) {
      if (config.arithmetic == Arithmetic::Int8 && !ranges) continue;
      auto network = make_cpu_network(net, config);
      ASSERT_TRUE(network) << network.error().message;
      SCOPED_TRACE(to_json(arch) + " " + (*network)->info().arithmetic);
      const Outputs got = run(**network, planes, 3);
      for (std::size_t p = 0; p < 3; ++p) {
        PlainOps ops(net, std::span(planes).subspan(p * size, size));
        const auto want = run_architecture(arch, ops);
        for (std::size_t i = 0; i < want.value.size(); ++i)
          ASSERT_NEAR(got.value[p * want.value.size() + i], want.value[i],
                      tolerance(config, want.value[i]));
        for (std::size_t i = 0; i < want.policy.size(); ++i) {
          ASSERT_NEAR(got.policy[p * want.policy.size() + i], want.policy[i],
                      tolerance(config, want.policy[i]))
              << i;
        }
      }
    }
  }
}

TEST(CpuNetwork, ABatchOfAnySizeGivesWhatSinglePositionsGive) {
  const NetFile net = random_net(varied_configs()[2], 7);
  auto network = *make_cpu_network(net);
  const auto planes = random_planes(19, 19, 8);
  const Outputs together = run(*network, planes, 19);
  for (std::size_t p = 0; p < 19; ++p) {
    const Outputs alone = run(*network, std::span(planes).subspan(p * 19 * 64, 19 * 64), 1);
    EXPECT_EQ(alone.value[0], together.value[p]);
    EXPECT_TRUE(std::equal(alone.policy.begin(), alone.policy.end(),
                           together.policy.begin() + static_cast<std::ptrdiff_t>(p * 768)));
  }
}

TEST(CpuNetwork, ClonesRunInThreadsOfTheirOwn) {
  auto network = *make_cpu_network(random_net(varied_configs()[0], 9));
  const auto planes = random_planes(3, 19, 10);
  const Outputs want = run(*network, planes, 3);
  std::vector<Outputs> got(4);
  {
    std::vector<std::jthread> threads;
    for (Outputs& outputs : got) {
      threads.emplace_back([&outputs, &planes, clone = network->clone()] {
        for (int i = 0; i < 20; ++i) outputs = run(*clone, planes, 3);
      });
    }
  }
  for (const Outputs& outputs : got) {
    EXPECT_EQ(outputs.policy, want.policy);
    EXPECT_EQ(outputs.value, want.value);
  }
}

// PyTorch's own outputs for its own file: tests/data/golden/rdt_tiny.py.
TEST(CpuNetwork, ComputesAPyTorchCheckpointAsPyTorchDoes) {
  const auto bytes = testing::read_bytes(test::data_path("golden/rdt_tiny.pt.zst"));
  auto network = load_cpu_network(bytes, "tiny", {.precision = Precision::Fp32});
  ASSERT_TRUE(network) << network.error().message;
  std::vector<float> planes;
  for (int p = 0; p < 19; ++p) {
    for (int s = 0; s < 64; ++s) planes.push_back((p * 37 + s * 11) % 7 == 0 ? 1.f : 0.f);
  }
  const Outputs got = run(**network, planes, 1);
  std::ifstream file(test::data_path("golden/rdt_tiny.json"));
  const auto want = nlohmann::json::parse(file);
  EXPECT_NEAR(got.value[0], want["value"].get<float>(), 2e-6);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(got.policy[i], want["logits_0_64"][i].get<float>(), 2e-5) << i;
  }
}

// The full-size checkpoint and the outputs of RDTChess's own code, where they are at hand. The
// planes are our encoder's, which has golden planes of its own.
TEST(CpuNetwork, ComputesRdtChessAsItDoesItself) {
  const auto weights = test::shared_path("golden/rdt_plain_golden.pt.zst");
  const auto outputs_path = test::shared_path("golden/rdt_plain_outputs.jsonl");
  if (!weights || !outputs_path) GTEST_SKIP() << "no golden data beside the checkout";
  auto network =
      load_cpu_network(testing::read_bytes(*weights), "golden", {.precision = Precision::Fp32});
  ASSERT_TRUE(network) << network.error().message;

  int rows = 0;
  std::ifstream outputs_file(*outputs_path);
  for (std::string line; std::getline(outputs_file, line); ++rows) {
    const auto want = nlohmann::json::parse(line);
    Game game(*parse_fen(want["start"].get<std::string>()));
    for (const auto& move : want["moves"]) {
      game.play(*parse_uci(game.position(), move.get<std::string>()));
    }
    std::vector<float> planes(kRdt19Planes * 64);
    encode_rdt19(game, planes);

    const Outputs got = run(**network, planes, 1);
    EXPECT_NEAR(got.value[0], want["value"].get<float>(), 1e-3);
    const auto best = std::max_element(got.policy.begin(), got.policy.end());
    EXPECT_EQ(best - got.policy.begin(), want["argmax"].get<std::ptrdiff_t>());
    std::string top;
    float top_logit = -1e9f;
    for (const Move m : legal_moves(game.position())) {
      const auto logit = policy_logit(PolicyHead::FromTo4096, game.position(), m, got.policy);
      if (!logit) continue;
      const std::string move = to_uci(game.position(), m);
      ASSERT_TRUE(want["logits"].contains(move)) << move;
      EXPECT_NEAR(*logit, want["logits"][move].get<float>(), 2e-3) << move;
      if (*logit > top_logit) {
        top_logit = *logit;
        top = move;
      }
    }
    EXPECT_EQ(top, want["top"]);
  }
  EXPECT_EQ(rows, 50);
}

}  // namespace
}  // namespace tahl::nn
