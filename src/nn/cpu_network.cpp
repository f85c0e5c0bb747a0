#include "nn/cpu_network.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

#include "nn/cpu_ops.h"
#include "nn/cpu_program.h"

namespace tahl::nn {
namespace {

// Positions that pass a layer together: enough to make use of each weight once it is loaded, few
// enough that a 128-channel board of each (32 KB) stays in the second-level cache.
constexpr int kChunk = 8;

class CpuNetwork : public Network {
 public:
  CpuNetwork(std::shared_ptr<const NetInfo> info, std::shared_ptr<const CpuProgram> program)
      : info_(std::move(info)), program_(std::move(program)) {}

  const NetInfo& info() const override { return *info_; }

  void forward(std::span<const float> planes, int n, const WantedOutputs&, std::span<float> policy,
               std::span<float> value) override {
    const auto in = static_cast<std::size_t>(info_->input_planes) * 64;
    const auto out = static_cast<std::size_t>(info_->policy_outputs);
    assert(planes.size() == in * static_cast<std::size_t>(n));
    assert(policy.size() == out * static_cast<std::size_t>(n));
    const auto value_size = static_cast<std::size_t>(info_->value_outputs);
    assert(value.size() == value_size * static_cast<std::size_t>(n));
    for (int first = 0; first < n; first += kChunk) {
      const int positions = std::min(kChunk, n - first);
      reserve(positions);
      for (const CpuStep& step : program_->steps) {
        run(step, planes.data() + static_cast<std::size_t>(first) * in, positions);
      }
      const CpuStep& logits = at(program_->policy);
      const CpuStep& values = at(program_->value);
      for (int p = 0; p < positions; ++p) {
        const auto to = static_cast<std::size_t>(first + p);
        std::copy_n(result(logits) + static_cast<std::size_t>(p) * logits.size(), out,
                    policy.data() + to * out);
        std::copy_n(result(values) + static_cast<std::size_t>(p) * values.size(), value_size,
                    value.data() + to * value_size);
      }
    }
  }

  std::unique_ptr<Network> clone() const override {
    return std::make_unique<CpuNetwork>(info_, program_);
  }

 private:
  // Room for that many positions; it only grows, so a search allocates in its first call alone.
  void reserve(int positions) {
    if (positions <= room_) return;
    room_ = positions;
    slots_.resize(program_->slots.size());
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      slots_[s].assign(program_->slots[s] * static_cast<std::size_t>(positions), 0);
    }
  }

  const CpuStep& at(int step) const { return program_->steps[static_cast<std::size_t>(step)]; }
  float* result(const CpuStep& step) { return slots_[static_cast<std::size_t>(step.slot)].data(); }

  void run(const CpuStep& step, const float* planes, int positions) {
    using Kind = CpuStep::Kind;
    const CpuKernels& kernels = *program_->kernels;
    float* out = result(step);
    const float* residual = step.residual < 0 ? nullptr : result(at(step.residual));
    const auto input = [&](std::size_t i) -> const float* { return result(at(step.inputs[i])); };
    const std::size_t total = step.size() * static_cast<std::size_t>(positions);
    switch (step.kind) {
      case Kind::Input:
        load_planes(planes, step.channels, positions, out);
        break;
      case Kind::Conv:
        (step.kernel == 3 ? kernels.conv3 : kernels.conv1)(
            {positions, at(step.inputs[0]).channels, step.channels, input(0), step.weights.data(),
             step.bias.data(), residual, out, step.activation});
        break;
      case Kind::Linear:
        kernels.linear({positions, pad(at(step.inputs[0]).channels), pad(step.channels), input(0),
                        step.weights.data(), step.bias.data(), out, step.activation});
        break;
      case Kind::Pool:
        mean_pool(input(0), pad(step.channels), positions, out);
        break;
      case Kind::Flatten:
        flatten(input(0), step.channels / 64, positions, out);
        break;
      case Kind::Concat:
        concat(input(0), at(step.inputs[0]).channels, input(1), at(step.inputs[1]).channels,
               positions, out);
        break;
      case Kind::ScaleBias:
        split(input(1), step.channels, pad(at(step.inputs[1]).channels), positions);
        kernels.scale_bias({positions, step.channels, input(0), scale_.data(), bias_.data(),
                            residual, out, step.activation});
        break;
      case Kind::Mix:
        kernels.mix(input(0), input(1), input(2), out, total);
        break;
      case Kind::Add:
        kernels.add(input(0), input(1), out, total);
        break;
      case Kind::Activate:
        kernels.activate(input(0), out, total, step.activation);
        break;
      case Kind::Mish:
        mish(input(0), out, total);
        break;
      case Kind::Selu:
        selu(input(0), out, total);
        break;
      case Kind::Softmax:
        softmax(input(0), step.channels, positions, out);
        break;
      case Kind::AttentionPolicy:
        attention_policy(input(0), input(1), step.weights.data(), at(step.inputs[0]).channels,
                         positions, out);
        break;
    }
  }

  static void load_planes(const float* planes, int channels, int positions, float* out) {
    const int stride = pad(channels);
    for (int p = 0; p < positions; ++p, planes += channels * 64, out += stride * 64) {
      std::fill_n(out, stride * 64, 0.f);
      for (int c = 0; c < channels; ++c) {
        for (int square = 0; square < 64; ++square) {
          out[square * stride + c] = planes[c * 64 + square];
        }
      }
    }
  }

  static void mean_pool(const float* in, int stride, int positions, float* out) {
    for (int p = 0; p < positions; ++p, in += stride * 64, out += stride) {
      std::fill_n(out, stride, 0.f);
      for (int square = 0; square < 64; ++square) {
        for (int c = 0; c < stride; ++c) out[c] += in[square * stride + c];
      }
      for (int c = 0; c < stride; ++c) out[c] *= 1 / 64.f;
    }
  }

  static void flatten(const float* in, int channels, int positions, float* out) {
    const int stride = pad(channels);
    for (int p = 0; p < positions; ++p, in += stride * 64, out += channels * 64) {
      for (int c = 0; c < channels; ++c) {
        for (int square = 0; square < 64; ++square) out[c * 64 + square] = in[square * stride + c];
      }
    }
  }

  static void concat(const float* a, int a_channels, const float* b, int b_channels, int positions,
                     float* out) {
    const int stride = pad(a_channels + b_channels);
    for (int square = 0; square < positions * 64; ++square) {
      float* end = std::copy_n(a + square * pad(a_channels), a_channels, out + square * stride);
      end = std::copy_n(b + square * pad(b_channels), b_channels, end);
      std::fill(end, out + (square + 1) * stride, 0.f);
    }
  }

  // Squeeze-and-excitation's vector: sigmoid of its first half as scale_, its second as bias_.
  void split(const float* both, int channels, int both_stride, int positions) {
    const auto stride = static_cast<std::size_t>(pad(channels));
    scale_.assign(stride * static_cast<std::size_t>(room_), 0);
    bias_.assign(stride * static_cast<std::size_t>(room_), 0);
    for (int p = 0; p < positions; ++p, both += both_stride) {
      std::copy_n(both, channels, scale_.data() + static_cast<std::size_t>(p) * stride);
      std::copy_n(both + channels, channels, bias_.data() + static_cast<std::size_t>(p) * stride);
    }
    program_->kernels->activate(scale_.data(), scale_.data(),
                                stride * static_cast<std::size_t>(positions), Activation::Sigmoid);
  }

  std::shared_ptr<const NetInfo> info_;
  std::shared_ptr<const CpuProgram> program_;
  int room_ = 0;  // positions the workspace has room for
  std::vector<std::vector<float>> slots_;
  std::vector<float> scale_, bias_;
};

}  // namespace

Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net, const NetworkOptions&,
                                                    CpuLevel level) {
  if (auto ok = validate(net.arch); !ok) return tl::unexpected(ok.error());
  if (auto ok = check_tensors(net); !ok) return tl::unexpected(ok.error());
  auto info = std::make_shared<NetInfo>(NetInfo{.arch = net.arch,
                                                .encoding = net.encoding,
                                                .input_planes = net.arch.input_planes,
                                                .policy_outputs = policy_outputs(net.arch),
                                                .value_outputs = value_outputs(net.arch),
                                                .metadata = net.metadata,
                                                .arithmetic = cpu_kernels(level).name});
  auto program = std::make_shared<CpuProgram>(compile_for_cpu(net, cpu_kernels(level)));
  return std::make_unique<CpuNetwork>(std::move(info), std::move(program));
}

Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net,
                                                    const NetworkOptions& options) {
  return make_cpu_network(net, options, best_cpu_level());
}

Expected<std::unique_ptr<Network>> load_cpu_network(const std::filesystem::path& path,
                                                    const NetworkOptions& options) {
  auto net = read_net(path);
  if (!net) return tl::unexpected(net.error());
  return make_cpu_network(*net, options);
}

Expected<std::unique_ptr<Network>> load_cpu_network(std::span<const std::uint8_t> bytes,
                                                    const std::string& name,
                                                    const NetworkOptions& options) {
  auto net = read_net(bytes, name);
  if (!net) return tl::unexpected(net.error());
  return make_cpu_network(*net, options);
}

std::string_view to_string(Precision precision) {
  constexpr std::string_view kNames[] = {"auto", "fp32", "bf16", "int8"};
  return kNames[static_cast<std::size_t>(precision)];
}

Expected<Precision> parse_precision(std::string_view name) {
  for (const Precision p : {Precision::Auto, Precision::Fp32, Precision::Bf16, Precision::Int8})
    if (to_string(p) == name) return p;
  return fail("precision {} is none of auto, fp32, bf16, int8", quoted(name));
}

}  // namespace tahl::nn
