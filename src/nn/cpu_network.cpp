#include "nn/cpu_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <charconv>
#include <chrono>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "nn/cpu_ops.h"
#include "nn/cpu_team.h"

namespace tahl::nn {
namespace {

// What one pass is about.
struct Pass {
  std::span<const float> planes;
  int n = 0;
  const WantedOutputs* wanted = nullptr;
  std::span<float> policy, value;
};

// Called before a 3x3 convolution's input is prepared; for calibration.
using Observer = std::function<void(const CpuStep&, const float* board, int positions)>;

class CpuNetwork : public Network {
 public:
  CpuNetwork(std::shared_ptr<const NetInfo> info, std::shared_ptr<const CpuProgram> program,
             int threads)
      : info_(std::move(info)), program_(std::move(program)), team_(threads) {
    workspaces_.resize(static_cast<std::size_t>(threads));
  }

  const NetInfo& info() const override { return *info_; }

  void forward(std::span<const float> planes, int n, const WantedOutputs& wanted,
               std::span<float> policy, std::span<float> value) override {
    assert(planes.size() == input_size() * static_cast<std::size_t>(n));
    assert(policy.size() == policy_size() * static_cast<std::size_t>(n));
    assert(value.size() == value_size() * static_cast<std::size_t>(n));
    assert(wanted.begin.empty() || wanted.begin.size() == static_cast<std::size_t>(n) + 1);
    if (n == 0) return;
    const FlushSubnormals flush;
    const Pass pass{planes, n, &wanted, policy, value};
    // A thread takes whole chunks, so that nobody waits for anybody; but if there are not chunks
    // for all, they share each position by its channels.
    const int members = team_.size();
    int chunk = program_->chunk;
    if (members > 1 && n >= chunk * members) {
      const int rounds = (n + chunk * members - 1) / (chunk * members);  // as many for each
      chunk = (n + rounds * members - 1) / (rounds * members);
      std::atomic<int> next{0};
      team_.run([&](int member) {
        for (int first = 0; (first = next.fetch_add(chunk)) < n;)
          run_chunk(pass, first, std::min(chunk, n - first), {0, 1, member});
      });
      return;
    }
    prepare(0);
    if (members == 1) {
      run_chunks(pass, chunk, {0, 1, 0});
      return;
    }
    CpuPace& pace = paces_[n == 1 ? 0 : n < chunk ? 1 : 2];
    const auto begin = std::chrono::steady_clock::now();
    if (pace.together())
      team_.run([&](int member) { run_chunks(pass, chunk, {member, members, 0}); });
    else
      run_chunks(pass, chunk, {0, 1, 0});
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    pace.record(time.count() / n);
  }

  std::unique_ptr<Network> clone() const override {
    return std::make_unique<CpuNetwork>(info_, program_, team_.size());
  }

  void observe(Observer observer) { observer_ = std::move(observer); }

 private:
  // A thread's part of a chunk: the `part`th of `parts` ranges of channels, in a workspace.
  struct Share {
    int part, parts;
    int workspace;
  };
  struct Workspace {
    std::vector<CpuBytes> slots;
    std::vector<CpuBytes> scratch, prepared;  // one a part
  };

  std::size_t input_size() const { return static_cast<std::size_t>(info_->input_planes) * 64; }
  std::size_t policy_size() const { return static_cast<std::size_t>(info_->policy_outputs); }
  std::size_t value_size() const { return static_cast<std::size_t>(info_->value_outputs); }

  // Room for a chunk; after the first call nothing is allocated.
  void prepare(int workspace) {
    Workspace& w = workspaces_[static_cast<std::size_t>(workspace)];
    if (!w.slots.empty()) return;
    for (const std::size_t size : program_->slots) w.slots.push_back(make_cpu_bytes(size));
    // Only the first workspace is ever shared.
    for (int part = 0; part < (workspace == 0 ? team_.size() : 1); ++part) {
      w.scratch.push_back(make_cpu_bytes(program_->scratch * sizeof(float)));
      w.prepared.push_back(make_cpu_bytes(program_->prepared));
    }
  }

  const CpuStep& at(int step) const { return program_->steps[static_cast<std::size_t>(step)]; }
  template <class T = void>
  T* result(const CpuStep& step, const Share& share) {
    Workspace& w = workspaces_[static_cast<std::size_t>(share.workspace)];
    if (step.kind == CpuStep::Kind::Prepare)
      return reinterpret_cast<T*>(w.prepared[static_cast<std::size_t>(share.part)].get());
    return reinterpret_cast<T*>(w.slots[static_cast<std::size_t>(step.slot)].get());
  }

  static ChannelRange range_of(int padded, const Share& share) {
    const int blocks = padded / 32;
    return {blocks * share.part / share.parts * 32, blocks * (share.part + 1) / share.parts * 32};
  }

  void run_chunks(const Pass& pass, int chunk, const Share& share) {
    for (int first = 0; first < pass.n; first += chunk)
      run_chunk(pass, first, std::min(chunk, pass.n - first), share);
  }

  void run_chunk(const Pass& pass, int first, int positions, const Share& share) {
    prepare(share.workspace);
    // The workspace is everybody's: nobody starts before all have read the last chunk's results.
    if (share.parts > 1) team_.barrier();
    for (const CpuStep& step : program_->steps) {
      if (step.barrier && share.parts > 1) team_.barrier();
      run(step, pass, first, positions, share);
    }
    if (share.parts > 1) team_.barrier();
    for (int p = share.part; p < positions; p += share.parts) {
      write_policy(pass, first, p, share);
      const CpuStep& values = at(program_->value);
      std::copy_n(result<float>(values, share) + static_cast<std::size_t>(p) * values.size,
                  value_size(), &pass.value[static_cast<std::size_t>(first + p) * value_size()]);
    }
  }

  void write_policy(const Pass& pass, int first, int p, const Share& share) {
    const CpuStep& logits = at(program_->policy);
    if (logits.kind == CpuStep::Kind::Rows || logits.kind == CpuStep::Kind::Points) return;
    float* out = &pass.policy[static_cast<std::size_t>(first + p) * policy_size()];
    const float* in = result<float>(logits, share) + static_cast<std::size_t>(p) * logits.size;
    if (logits.kind != CpuStep::Kind::Flatten) {
      std::copy_n(in, policy_size(), out);
      return;
    }
    const std::size_t stride = logits.size / 64;
    if (!pass.wanted->begin.empty()) {
      for (const std::uint16_t o : wanted_of(pass, first + p))
        out[o] = in[o % 64 * stride + o / 64];
      return;
    }
    for (std::size_t c = 0; c < policy_size() / 64; ++c)
      for (std::size_t square = 0; square < 64; ++square)
        out[c * 64 + square] = in[square * stride + c];
  }

  static std::span<const std::uint16_t> wanted_of(const Pass& pass, int position) {
    const auto i = static_cast<std::size_t>(position);
    const auto begin = pass.wanted->begin[i], end = pass.wanted->begin[i + 1];
    return pass.wanted->outputs.subspan(begin, end - begin);
  }

  void run(const CpuStep& step, const Pass& pass, int first, int positions, const Share& share) {
    using Kind = CpuStep::Kind;
    const CpuKernels& kernels = *program_->kernels;
    void* out = result(step, share);
    const auto input = [&](std::size_t i) -> const void* {
      return result(at(step.inputs[i]), share);
    };
    const void* residual = step.residual < 0 ? nullptr : result(at(step.residual), share);
    const ChannelRange range = range_of(pad(step.channels), share);
    const int stride = pad(step.channels);
    switch (step.kind) {
      case Kind::Input:
        for (int p = share.part; p < positions; p += share.parts)
          kernels.load_planes(&pass.planes[static_cast<std::size_t>(first + p) * input_size()],
                              step.channels, stride,
                              static_cast<std::byte*>(out) + p * 64 * stride * kernels.cell_bytes);
        break;
      case Kind::Stem:
        kernels.stem({positions, info_->input_planes, step.channels, range,
                      &pass.planes[static_cast<std::size_t>(first) * input_size()],
                      static_cast<const float*>(weights_of(step)), step.bias.data(), out,
                      step.activation == Activation::Relu});
        break;
      case Kind::Prepare:
        if (observer_) observer_(step, static_cast<const float*>(input(0)), positions);
        (program_->method == ConvMethod::Winograd ? kernels.prepare_winograd
                                                  : kernels.prepare_direct)(
            {positions, step.channels, {0, stride}, input(0), step.prepare_scale, out});
        break;
      case Kind::Conv3:
      case Kind::Conv1: {
        const auto conv = step.kind == Kind::Conv1                   ? kernels.conv1
                          : program_->method == ConvMethod::Winograd ? kernels.conv3_winograd
                                                                     : kernels.conv3_direct;
        Workspace& w = workspaces_[static_cast<std::size_t>(share.workspace)];
        conv({positions, at(step.inputs[0]).channels, step.channels, range, input(0),
              weights_of(step), step.bias.data(), step.scale.data(), residual, out,
              reinterpret_cast<float*>(w.scratch[static_cast<std::size_t>(share.part)].get()),
              step.activation});
        break;
      }
      case Kind::Linear:
        linear(step, positions, share);
        break;
      case Kind::Rows:
        rows(step, pass, first, positions, share);
        break;
      case Kind::Points:
        points(step, pass, first, positions, share);
        break;
      case Kind::Pool:
        kernels.pool({positions, stride, range, input(0), nullptr, nullptr, out});
        break;
      case Kind::Flatten: {
        const int channels = pad(step.channels / 64);
        kernels.to_floats(
            {positions, channels, range_of(channels, share), input(0), nullptr, nullptr, out});
        break;
      }
      case Kind::Concat:
        concat(step, positions, share);
        break;
      case Kind::ScaleBias:
        kernels.scale_bias(
            {positions, step.channels, range, input(0), static_cast<const float*>(input(1)),
             static_cast<int>(at(step.inputs[1]).size), residual, out, step.activation});
        break;
      case Kind::Mix:
        kernels.mix({positions, stride, range, input(1), input(2), input(0), out});
        break;
      case Kind::Add:
        if (step.is_board) {
          kernels.add({positions, stride, range, input(0), input(1), nullptr, out});
        } else if (share.part == 0) {
          const auto* x = static_cast<const float*>(input(0));
          const auto* y = static_cast<const float*>(input(1));
          for (std::size_t i = 0; i < step.size * static_cast<std::size_t>(positions); ++i)
            static_cast<float*>(out)[i] = x[i] + y[i];
        }
        break;
      case Kind::Activate:
        if (step.is_board) {
          kernels.activate({positions, stride, range, input(0), nullptr, nullptr, out},
                           step.activation);
        } else if (share.part == 0) {
          kernels.activate_vector(static_cast<const float*>(input(0)), static_cast<float*>(out),
                                  static_cast<int>(step.size) * positions, step.activation);
        }
        break;
      case Kind::Softmax:
        if (share.part == 0)
          softmax(static_cast<const float*>(input(0)), step.channels, positions,
                  static_cast<float*>(out));
        break;
      case Kind::AttentionPolicy:
        for (int p = share.part; p < positions; p += share.parts) {
          const auto at_position = static_cast<std::size_t>(p);
          const CpuStep& queries = at(step.inputs[0]);
          attention_policy(static_cast<const float*>(input(0)) + at_position * queries.size,
                           static_cast<const float*>(input(1)) + at_position * queries.size,
                           step.scale.data(), queries.channels / 64, 1,
                           static_cast<float*>(out) + at_position * step.size);
        }
        break;
    }
  }

  const void* weights_of(const CpuStep& step) const {
    return program_->weights.get() + step.weights;
  }

  void linear(const CpuStep& step, int positions, const Share& share) {
    const CpuKernels& kernels = *program_->kernels;
    const CpuStep& from = at(step.inputs[0]);
    const auto [begin, end] = range_of(static_cast<int>(step.size), share);
    const auto multiply = from.is_board  ? kernels.linear_cells
                          : step.is_half ? kernels.linear_half
                                         : kernels.linear;
    const auto in_size = static_cast<int>(from.is_board ? 64 * from.size : from.size);
    multiply({positions, in_size, static_cast<int>(step.size), begin, end, result(from, share),
              weights_of(step), step.bias.data(), result<float>(step, share), step.activation});
  }

  // Straight into the output.
  void rows(const CpuStep& step, const Pass& pass, int first, int positions, const Share& share) {
    const CpuKernels& kernels = *program_->kernels;
    const CpuStep& from = at(step.inputs[0]);
    const auto dot = step.is_half ? kernels.dot_half : kernels.dot;
    const std::size_t row_bytes =
        from.size * (step.is_half ? sizeof(std::uint16_t) : sizeof(float));
    const auto* weights = static_cast<const std::byte*>(weights_of(step));
    const auto compute = [&](int p, std::size_t row) {
      const float* x = result<float>(from, share) + static_cast<std::size_t>(p) * from.size;
      pass.policy[static_cast<std::size_t>(first + p) * policy_size() + row] =
          dot(x, weights + row * row_bytes, static_cast<int>(from.size)) + step.bias[row];
    };
    const auto part = static_cast<std::size_t>(share.part);
    const auto parts = static_cast<std::size_t>(share.parts);
    if (pass.wanted->begin.empty()) {
      for (std::size_t row = part; row < policy_size(); row += parts)
        for (int p = 0; p < positions; ++p) compute(p, row);
      return;
    }
    for (int p = 0; p < positions; ++p) {
      const auto wanted = wanted_of(pass, first + p);
      for (std::size_t i = part; i < wanted.size(); i += parts) compute(p, wanted[i]);
    }
  }

  // The same.
  void points(const CpuStep& step, const Pass& pass, int first, int positions, const Share& share) {
    const CpuKernels& kernels = *program_->kernels;
    const CpuStep& from = at(step.inputs[0]);
    const int stride = pad(from.channels);
    const auto point = step.is_half ? kernels.point_half : kernels.point;
    const auto row_bytes = static_cast<std::size_t>(9 * stride) *
                           (step.is_half ? sizeof(std::uint16_t) : sizeof(float));
    const auto* weights = static_cast<const std::byte*>(weights_of(step));
    const auto part = static_cast<std::size_t>(share.part);
    const auto parts = static_cast<std::size_t>(share.parts);
    for (int p = 0; p < positions; ++p) {
      const auto* board =
          result<const std::byte>(from, share) + p * 64 * stride * kernels.cell_bytes;
      float* out = &pass.policy[static_cast<std::size_t>(first + p) * policy_size()];
      const auto compute = [&](std::size_t o) {
        out[o] = point(board, stride, static_cast<int>(o % 64), weights + o / 64 * row_bytes) +
                 step.bias[o / 64];
      };
      if (pass.wanted->begin.empty()) {
        for (std::size_t o = part; o < policy_size(); o += parts) compute(o);
        continue;
      }
      const auto wanted = wanted_of(pass, first + p);
      for (std::size_t i = part; i < wanted.size(); i += parts) compute(wanted[i]);
    }
  }

  void concat(const CpuStep& step, int positions, const Share& share) {
    const auto cell = static_cast<std::size_t>(program_->kernels->cell_bytes);
    auto* out = result<std::byte>(step, share);
    const auto stride = static_cast<std::size_t>(pad(step.channels)) * cell;
    const int squares = positions * 64;
    std::size_t at_byte = 0;
    for (const int i : step.inputs) {
      const CpuStep& from = at(i);
      const auto* in = result<const std::byte>(from, share);
      const auto from_stride = static_cast<std::size_t>(pad(from.channels)) * cell;
      const auto bytes = static_cast<std::size_t>(from.channels) * cell;
      for (int square = squares * share.part / share.parts;
           square < squares * (share.part + 1) / share.parts; ++square) {
        const auto s = static_cast<std::size_t>(square);
        std::copy_n(in + s * from_stride, bytes, out + s * stride + at_byte);
      }
      at_byte += bytes;
    }
  }

  std::shared_ptr<const NetInfo> info_;
  std::shared_ptr<const CpuProgram> program_;
  CpuTeam team_;
  std::array<CpuPace, 3> paces_;       // of passes of one, of few and of more positions
  std::vector<Workspace> workspaces_;  // one a thread; a shared chunk uses the first
  Observer observer_;
};

std::string describe(const CpuKernels& kernels, const CpuConfig& config) {
  constexpr const char* kArithmetics[] = {"fp32", "bf16", "int8"};
  return fmt::format("{} {}, {}, {} thread{}", kArithmetics[static_cast<int>(config.arithmetic)],
                     config.method == ConvMethod::Winograd ? "winograd" : "direct", kernels.name,
                     config.threads, config.threads == 1 ? "" : "s");
}

Expected<std::unique_ptr<CpuNetwork>> build(const NetFile& net, const CpuConfig& config) {
  if (auto ok = validate(net.arch); !ok) return tl::unexpected(ok.error());
  if (auto ok = check_tensors(net); !ok) return tl::unexpected(ok.error());
  const CpuKernels& kernels = cpu_kernels(config.level, config.arithmetic);
  Int8Ranges ranges;
  if (config.arithmetic == Arithmetic::Int8) {
    auto found = int8_ranges(net);
    if (!found) return tl::unexpected(found.error());
    ranges = std::move(*found);
  }
  auto program = std::make_shared<CpuProgram>(compile_for_cpu(net, kernels, config.method, ranges));
  auto info = std::make_shared<NetInfo>(NetInfo{.arch = net.arch,
                                                .encoding = net.encoding,
                                                .input_planes = net.arch.input_planes,
                                                .policy_outputs = policy_outputs(net.arch),
                                                .value_outputs = value_outputs(net.arch),
                                                .metadata = net.metadata,
                                                .arithmetic = describe(kernels, config),
                                                .macs = program->macs});
  return std::make_unique<CpuNetwork>(std::move(info), std::move(program), config.threads);
}

}  // namespace

Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net, const CpuConfig& config) {
  return build(net, config);
}

namespace {

// Whether the net's file says that this share of first choices, at least, is that of fp32.
bool has_agreed(const NetFile& net, const char* key, double least) {
  const auto found = net.metadata.find(key);
  if (found == net.metadata.end()) return false;
  double share = 0;
  const char* end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, share);
  return error == std::errc() && stop == end && share >= least;
}

}  // namespace

Expected<CpuConfig> choose_cpu_config(const NetFile& net, const NetworkOptions& options) {
  CpuConfig config;
  // More than there are processors would only wait for each other.
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  config.threads = std::clamp(options.threads, 1, processors);
  const bool has_bf16 = cpu_supports(config.level, Arithmetic::Bf16);
  const bool has_int8 = cpu_supports(config.level, Arithmetic::Int8);
  switch (options.precision) {
    case Precision::Fp32:
      break;
    case Precision::Bf16:
      if (!has_bf16) return fail("precision bf16: this processor has no bfloat16 products");
      config.arithmetic = Arithmetic::Bf16;
      break;
    case Precision::Int8:
      if (!has_int8) return fail("precision int8: this processor has no byte products (VNNI)");
      config.arithmetic = Arithmetic::Int8;
      config.method = ConvMethod::Direct;
      break;
    case Precision::Auto:
      // The fastest first (docs/inference.md).
      if (has_bf16 && has_agreed(net, kBf16Agreement, 0.99)) {
        config.arithmetic = Arithmetic::Bf16;
      } else if (has_int8 && has_agreed(net, kInt8Agreement, 0.98)) {
        config.arithmetic = Arithmetic::Int8;
        config.method = ConvMethod::Direct;
      }
  }
  return config;
}

Expected<std::unique_ptr<Network>> make_cpu_network(const NetFile& net,
                                                    const NetworkOptions& options) {
  auto config = choose_cpu_config(net, options);
  if (!config) return tl::unexpected(config.error());
  return make_cpu_network(net, *config);
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

Expected<Int8Ranges> calibrate_int8(const NetFile& net, std::span<const float> planes, int n) {
  auto network = build(net, {.arithmetic = Arithmetic::Fp32, .method = ConvMethod::Winograd});
  if (!network) return tl::unexpected(network.error());
  // Two passes: the largest input, then a histogram up to it.
  struct Seen {
    float least = 0, most = 0;
    std::vector<double> histogram;
  };
  constexpr int kBins = 4096;
  std::map<std::string, Seen> seen;
  const auto each = [](const CpuStep& step, const float* board, int positions, auto f) {
    for (int square = 0; square < positions * 64; ++square)
      for (int c = 0; c < step.channels; ++c) f(board[square * pad(step.channels) + c]);
  };
  std::vector<float> policy(static_cast<std::size_t>((*network)->info().policy_outputs) *
                            static_cast<std::size_t>(n));
  std::vector<float> value(static_cast<std::size_t>((*network)->info().value_outputs) *
                           static_cast<std::size_t>(n));
  (*network)->observe([&](const CpuStep& step, const float* board, int positions) {
    Seen& s = seen[step.name];
    each(step, board, positions, [&](float x) {
      s.least = std::min(s.least, x);
      s.most = std::max(s.most, x);
    });
  });
  (*network)->Network::forward(planes, n, policy, value);
  for (auto& [name, s] : seen) {
    if (s.least < 0)
      return fail("int8: the input of {} is as low as {}, and bytes here have no sign", name,
                  s.least);
    if (s.most == 0) s.most = 1;
    s.histogram.assign(kBins, 0);
  }
  (*network)->observe([&](const CpuStep& step, const float* board, int positions) {
    Seen& s = seen[step.name];
    each(step, board, positions, [&](float x) {
      if (x > 0)
        ++s.histogram[std::min<std::size_t>(kBins - 1,
                                            static_cast<std::size_t>(x / s.most * kBins))];
    });
  });
  (*network)->Network::forward(planes, n, policy, value);
  Int8Ranges ranges;
  for (const auto& [name, s] : seen) {
    // Rounding costs step^2 / 12 a number, cutting off the square of what is cut.
    double best = -1;
    for (int bins = kBins / 16; bins <= kBins; bins += kBins / 256) {
      const double width = double{s.most} / kBins, range = bins * width;
      const double step = range / 255;
      double error = 0;
      for (int i = 0; i < kBins; ++i) {
        const double x = (i + 0.5) * width;
        const double e = i < bins ? step * step / 12 : (x - range) * (x - range);
        error += s.histogram[static_cast<std::size_t>(i)] * e;
      }
      if (best < 0 || error < best) {
        best = error;
        ranges[name] = static_cast<float>(range);
      }
    }
  }
  return ranges;
}

std::string to_json(const Int8Ranges& ranges) { return nlohmann::json(ranges).dump(); }

Expected<Int8Ranges> int8_ranges(const NetFile& net) {
  const auto found = net.metadata.find("int8_ranges");
  if (found == net.metadata.end())
    return fail("precision int8: the net has not been calibrated (tahl net quantize)");
  const auto json = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  Int8Ranges ranges;
  for (const std::string& name : int8_layers(net.arch)) {
    const auto value = json.is_object() ? json.find(name) : json.end();
    if (value == json.end() || !value->is_number())
      return fail("precision int8: the net's int8_ranges lack {}", name);
    const float range = value->get<float>();
    if (!(range > 0) || !std::isfinite(range))
      return fail("precision int8: the net's int8_ranges say {} of {}", range, name);
    ranges[name] = range;
  }
  return ranges;
}

}  // namespace tahl::nn
