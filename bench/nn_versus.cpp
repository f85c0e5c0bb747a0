// A net's forward pass here beside oneDNN's and torch's, in turns in one process:
//   OMP_NUM_THREADS=2 OMP_PROC_BIND=true bench_nn [rdt|rdt2|64x6] [rounds] [batch...]
// oneDNN gets what is best for it: norms folded, activations and sums as post-operations, its own
// choice of formats, weights and inputs in place before the clock runs. It computes the whole
// policy layer, as a library that does not know which outputs are wanted must.
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>

#include "nn/arch_rdt.h"
#include "nn/cpu_network.h"
#ifdef TAHL_WITH_TORCH
#include "nn/torch_network.h"
#endif

namespace tahl::nn {
namespace {

using dnnl::memory;

// The operations of arch_ops.h as oneDNN primitives.
class DnnlNetwork {
 public:
  DnnlNetwork(const NetFile& net, int batch, memory::data_type type)
      : net_(net), batch_(batch), type_(type) {
    input_ = std::make_shared<Layer>();
    input_->channels = net.arch.input_planes;
    // Nineteen channels would send it to its reference code.
    padded_input_ = (net.arch.input_planes + 31) / 32 * 32;
    input_->out = make({{batch_, padded_input_, 8, 8}, type_, memory::format_tag::nhwc});
    outputs_ = rdt(net.arch, *this);
    finish(*outputs_.policy);
    finish(*outputs_.value);
    policy_ = as_floats(*outputs_.policy);
    value_ = as_floats(*outputs_.value);
  }

  struct Layer {
    memory out;
    int channels = 0;
    bool is_board = true;
    // A convolution that has not been built, since more may be joined to it.
    bool pending = false;
    std::shared_ptr<Layer> in, residual;
    std::vector<float> weights, bias;
    int kernel = 0;
    bool relu = false;
  };
  using Value = std::shared_ptr<Layer>;

  void forward(std::span<const float> planes) {
    auto* in = static_cast<std::uint16_t*>(input_->out.get_data_handle());
    auto* in_floats = static_cast<float*>(input_->out.get_data_handle());
    const auto channels = static_cast<std::size_t>(net_.arch.input_planes);
    const auto stride = static_cast<std::size_t>(padded_input_);
    for (std::size_t p = 0; p < static_cast<std::size_t>(batch_); ++p)
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t s = 0; s < 64; ++s) {
          const float x = planes[(p * channels + c) * 64 + s];
          if (type_ == memory::data_type::f32)
            in_floats[(p * 64 + s) * stride + c] = x;
          else
            in[(p * 64 + s) * stride + c] = bfloat16_from_float(x);
        }
    for (auto& [primitive, arguments] : program_) primitive.execute(stream_, arguments);
    stream_.wait();
  }
  const float* policy() const { return static_cast<const float*>(policy_.get_data_handle()); }
  const float* value() const { return static_cast<const float*>(value_.get_data_handle()); }

  // ---- Operations ----
  Value input() { return input_; }
  Value conv(const std::string& name, Value x, const ConvOptions& options) {
    finish(*x);
    auto made = std::make_shared<Layer>();
    made->channels = options.out;
    made->pending = true;
    made->in = x;
    made->weights = net_.tensors.at(name + ".weight").data;
    made->bias = options.bias ? net_.tensors.at(name + ".bias").data
                              : std::vector<float>(static_cast<std::size_t>(options.out));
    made->kernel = options.kernel;
    return made;
  }
  Value batch_norm(const std::string& name, Value x) {
    const auto of = [&](const char* what) -> const std::vector<float>& {
      return net_.tensors.at(name + what).data;
    };
    const auto out = static_cast<std::size_t>(x->channels);
    const std::size_t row = x->weights.size() / out;
    for (std::size_t o = 0; o < out; ++o) {
      const float gain = of(".weight")[o] / std::sqrt(of(".running_var")[o] + kBatchNormEpsilon);
      for (std::size_t i = 0; i < row; ++i) x->weights[o * row + i] *= gain;
      x->bias[o] = (x->bias[o] - of(".running_mean")[o]) * gain + of(".bias")[o];
    }
    return x;
  }
  Value relu(Value x) {
    if (x->pending) {
      x->relu = true;
      return x;
    }
    return eltwise(x, dnnl::algorithm::eltwise_relu);
  }
  Value sigmoid(Value x) { return eltwise(x, dnnl::algorithm::eltwise_logistic); }
  Value tanh(Value x) { return eltwise(x, dnnl::algorithm::eltwise_tanh); }
  Value add(Value x, Value y) {
    finish(*y);
    if (x->pending && !x->residual) {
      x->residual = y;
      return x;
    }
    return binary(x->out, y->out, dnnl::algorithm::binary_add, *x);
  }
  Value mean_pool(Value x) {
    finish(*x);
    auto made = std::make_shared<Layer>();
    made->channels = x->channels;
    made->is_board = false;
    const memory::desc out({batch_, x->channels, 1, 1}, type_, memory::format_tag::any);
    const dnnl::pooling_forward::primitive_desc pool(
        dnnl::pooling_forward::desc(dnnl::prop_kind::forward_inference,
                                    dnnl::algorithm::pooling_avg_exclude_padding, x->out.get_desc(),
                                    out, {1, 1}, {8, 8}, {0, 0}, {0, 0}),
        engine_);
    made->out = make(pool.dst_desc());
    push(dnnl::pooling_forward(pool), {{DNNL_ARG_SRC, x->out}, {DNNL_ARG_DST, made->out}});
    return made;
  }
  Value flatten(Value x) { return x; }  // inner products take boards as they are
  Value linear(const std::string& name, Value x, int out) {
    finish(*x);
    auto made = std::make_shared<Layer>();
    made->channels = out;
    made->is_board = false;
    memory::dims shape = x->out.get_desc().dims();
    memory::dims weight_shape = shape;
    weight_shape[0] = out;
    const auto any = memory::format_tag::any;
    const dnnl::inner_product_forward::primitive_desc product(
        dnnl::inner_product_forward::desc(
            dnnl::prop_kind::forward_inference, {shape, type_, any}, {weight_shape, type_, any},
            {{out}, memory::data_type::f32, memory::format_tag::x}, {{batch_, out}, type_, any}),
        engine_);
    made->out = make(product.dst_desc());
    const auto plain = shape.size() == 4 ? memory::format_tag::nchw : memory::format_tag::nc;
    push(dnnl::inner_product_forward(product),
         {{DNNL_ARG_SRC, in_format(x->out, product.src_desc())},
          {DNNL_ARG_WEIGHTS, weights_in(net_.tensors.at(name + ".weight").data, weight_shape, plain,
                                        product.weights_desc())},
          {DNNL_ARG_BIAS, floats(net_.tensors.at(name + ".bias").data)},
          {DNNL_ARG_DST, made->out}});
    return made;
  }
  Value concat(Value x, Value y) {
    finish(*x);
    finish(*y);
    auto made = std::make_shared<Layer>();
    made->channels = x->channels + y->channels;
    const dnnl::concat::primitive_desc both(1, {x->out.get_desc(), y->out.get_desc()}, engine_);
    made->out = make(both.dst_desc());
    push(dnnl::concat(both), {{DNNL_ARG_MULTIPLE_SRC, x->out},
                              {DNNL_ARG_MULTIPLE_SRC + 1, y->out},
                              {DNNL_ARG_DST, made->out}});
    return made;
  }
  Value scale_bias(Value x, Value both) {
    finish(*x);
    // Views of the two halves of the vector, which is plain.
    memory plain = make({{batch_, both->channels}, type_, memory::format_tag::nc});
    reorder(both->out, plain);
    const auto half = [&](int offset) {
      memory part = make({{batch_, x->channels, 1, 1}, type_, memory::format_tag::nhwc});
      const memory::desc view = plain.get_desc()
                                    .submemory_desc({batch_, x->channels}, {0, offset})
                                    .reshape({batch_, x->channels, 1, 1});
      const memory from(view, engine_, plain.get_data_handle());
      push(dnnl::reorder(from, part), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, part}});
      return part;
    };
    Layer scale;
    scale.out = half(0);
    scale.channels = x->channels;
    const auto gate = eltwise(std::make_shared<Layer>(scale), dnnl::algorithm::eltwise_logistic);
    const auto scaled = binary(x->out, gate->out, dnnl::algorithm::binary_mul, *x);
    return binary(scaled->out, half(x->channels), dnnl::algorithm::binary_add, *x);
  }
  Value mix(Value z, Value a, Value b) {
    finish(*z);
    const auto difference = binary(a->out, b->out, dnnl::algorithm::binary_sub, *a);
    const auto scaled = binary(difference->out, z->out, dnnl::algorithm::binary_mul, *a);
    return binary(scaled->out, b->out, dnnl::algorithm::binary_add, *a);
  }

 private:
  using Arguments = std::unordered_map<int, memory>;

  void push(dnnl::primitive primitive, Arguments arguments) {
    program_.emplace_back(std::move(primitive), std::move(arguments));
  }
  // Zeros: padding is read.
  memory make(const memory::desc& desc) {
    memory made(desc, engine_);
    std::fill_n(static_cast<std::byte*>(made.get_data_handle()), desc.get_size(), std::byte{});
    return made;
  }
  void reorder(memory from, memory to) {
    push(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }
  memory in_format(const memory& have, const memory::desc& want) {
    if (have.get_desc() == want) return have;
    memory made = make(want);
    reorder(have, made);
    return made;
  }
  memory floats(const std::vector<float>& x) {
    memory made(
        {{static_cast<memory::dim>(x.size())}, memory::data_type::f32, memory::format_tag::x},
        engine_);
    std::ranges::copy(x, static_cast<float*>(made.get_data_handle()));
    return made;
  }
  // Done once, before the clock runs.
  memory weights_in(const std::vector<float>& x, const memory::dims& shape,
                    memory::format_tag plain, const memory::desc& want) {
    memory from({shape, memory::data_type::f32, plain}, engine_);
    std::ranges::copy(x, static_cast<float*>(from.get_data_handle()));
    memory made = make(want);
    dnnl::reorder(from, made).execute(stream_, from, made);
    stream_.wait();
    return made;
  }
  memory as_floats(const Layer& layer) {
    const memory::dims shape = layer.out.get_desc().dims();
    memory made({shape, memory::data_type::f32,
                 shape.size() == 4 ? memory::format_tag::nchw : memory::format_tag::nc},
                engine_);
    reorder(layer.out, made);
    return made;
  }

  void finish(Layer& layer) {
    if (!layer.pending) return;
    layer.pending = false;
    memory in = layer.in->out;
    const int in_channels = static_cast<int>(in.get_desc().dims()[1]);
    const int given = layer.in->channels, k = layer.kernel;
    if (in_channels != given) {  // the padded input
      std::vector<float> padded(static_cast<std::size_t>(layer.channels * in_channels * k * k));
      const auto row = static_cast<std::size_t>(given * k * k);
      for (std::size_t o = 0; o < static_cast<std::size_t>(layer.channels); ++o)
        std::copy_n(&layer.weights[o * row], row,
                    &padded[o * static_cast<std::size_t>(in_channels * k * k)]);
      layer.weights = padded;
    }
    dnnl::post_ops after;
    if (layer.residual) after.append_sum();
    if (layer.relu) after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    const auto any = memory::format_tag::any;
    const memory::dims weight_shape{layer.channels, in_channels, k, k};
    const memory::dim edge = k / 2;
    const dnnl::convolution_forward::primitive_desc conv(
        dnnl::convolution_forward::desc(
            dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
            {{batch_, in_channels, 8, 8}, type_, any}, {weight_shape, type_, any},
            {{layer.channels}, memory::data_type::f32, memory::format_tag::x},
            {{batch_, layer.channels, 8, 8}, type_, any}, {1, 1}, {edge, edge}, {edge, edge}),
        attributes, engine_);
    if (layer.residual) {
      // The sum is made in place; so a copy where the operand is needed again.
      const bool needed = layer.residual.use_count() > 2;
      layer.out = needed || layer.residual->out.get_desc() != conv.dst_desc()
                      ? make(conv.dst_desc())
                      : layer.residual->out;
      if (layer.out.get() != layer.residual->out.get()) reorder(layer.residual->out, layer.out);
    } else {
      layer.out = make(conv.dst_desc());
    }
    push(dnnl::convolution_forward(conv),
         {{DNNL_ARG_SRC, in_format(in, conv.src_desc())},
          {DNNL_ARG_WEIGHTS,
           weights_in(layer.weights, weight_shape, memory::format_tag::oihw, conv.weights_desc())},
          {DNNL_ARG_BIAS, floats(layer.bias)},
          {DNNL_ARG_DST, layer.out}});
    layer.in.reset();
    layer.residual.reset();
  }

  Value eltwise(Value x, dnnl::algorithm algorithm) {
    finish(*x);
    auto made = std::make_shared<Layer>(*x);
    made->out = make(x->out.get_desc());
    const dnnl::eltwise_forward::primitive_desc each(
        dnnl::eltwise_forward::desc(dnnl::prop_kind::forward_inference, algorithm,
                                    x->out.get_desc(), 0, 0),
        engine_);
    push(dnnl::eltwise_forward(each), {{DNNL_ARG_SRC, x->out}, {DNNL_ARG_DST, made->out}});
    return made;
  }
  Value binary(memory x, memory y, dnnl::algorithm algorithm, const Layer& like) {
    auto made = std::make_shared<Layer>();
    made->channels = like.channels;
    made->is_board = like.is_board;
    made->out = make(x.get_desc());
    const dnnl::binary::primitive_desc two(
        dnnl::binary::desc(algorithm, x.get_desc(), y.get_desc(), made->out.get_desc()), engine_);
    push(dnnl::binary(two), {{DNNL_ARG_SRC_0, x}, {DNNL_ARG_SRC_1, y}, {DNNL_ARG_DST, made->out}});
    return made;
  }

  const NetFile& net_;
  int batch_, padded_input_ = 0;
  memory::data_type type_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<std::pair<dnnl::primitive, Arguments>> program_;
  Value input_;
  NetworkOutputs<Value> outputs_;
  memory policy_, value_;
};

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

// The main thread on all processors, so that the networks' workers may choose theirs, or pinned to
// the first, where OMP_PROC_BIND has put it for oneDNN; the workers of both then have the second.
void pin_main(bool pinned) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < (pinned ? 1 : static_cast<int>(std::thread::hardware_concurrency())); ++i)
    CPU_SET(i, &set);
  sched_setaffinity(0, sizeof set, &set);
}

struct Contestant {
  std::string name;
  std::function<void()> pass;
  std::vector<double> milliseconds;
};

int run(const std::string& shape, int rounds, const std::vector<int>& batches) {
  const ArchConfig arch = shape == "rdt"    ? rdtchess_config()
                          : shape == "rdt2" ? rdtchess2_config()
                                            : ArchConfig{.se = true, .se_reduction = 8};
  NetFile net = fresh_net(arch);
  constexpr int kThreads = 2, kWanted = 35;
  for (const int batch : batches) {
    std::mt19937 random(2);
    std::vector<float> planes(static_cast<std::size_t>(batch * arch.input_planes * 64));
    for (float& x : planes) x = random() % 16 == 0 ? 1.f : 0.f;
    const auto outputs = static_cast<std::size_t>(policy_outputs(arch));
    std::vector<std::uint16_t> wanted;
    std::vector<std::uint32_t> begin{0};
    for (int i = 0; i < batch; ++i) {
      for (int k = 0; k < kWanted; ++k)
        wanted.push_back(static_cast<std::uint16_t>(random() % outputs));
      begin.push_back(static_cast<std::uint32_t>(wanted.size()));
    }
    std::vector<float> policy(outputs * static_cast<std::size_t>(batch)),
        value(static_cast<std::size_t>(batch));
    const auto ranges = calibrate_int8(net, planes, batch);
    if (!ranges) {
      fmt::print(stderr, "bench_nn: {}\n", ranges.error().message);
      return 1;
    }
    net.metadata["int8_ranges"] = to_json(*ranges);

    pin_main(false);
    std::vector<std::unique_ptr<Network>> ours;
    std::vector<std::unique_ptr<DnnlNetwork>> theirs;
    std::vector<Contestant> all;
    for (const auto& [type, name] : {std::pair{memory::data_type::bf16, "oneDNN bf16"},
                                     std::pair{memory::data_type::f32, "oneDNN fp32"}}) {
      theirs.push_back(std::make_unique<DnnlNetwork>(net, batch, type));
      all.push_back({name, [n = theirs.back().get(), &planes] { n->forward(planes); }, {}});
    }
    for (const auto& [arithmetic, method] : {std::pair{Arithmetic::Bf16, ConvMethod::Winograd},
                                             std::pair{Arithmetic::Bf16, ConvMethod::Direct},
                                             std::pair{Arithmetic::Int8, ConvMethod::Direct},
                                             std::pair{Arithmetic::Fp32, ConvMethod::Winograd}}) {
      if (!cpu_supports(best_cpu_level(), arithmetic)) continue;
      auto network = make_cpu_network(
          net, CpuConfig{.arithmetic = arithmetic, .method = method, .threads = kThreads});
      if (!network) return 1;
      ours.push_back(std::move(*network));
      all.push_back({ours.back()->info().arithmetic,
                     [&, n = ours.back().get()] {
                       n->forward(planes, batch, {wanted, begin}, policy, value);
                     },
                     {}});
    }
#ifdef TAHL_WITH_TORCH
    auto torch = make_torch_network(net);
    if (!torch) return 1;
    all.push_back({"torch fp32", [&] { (*torch)->forward(planes, batch, policy, value); }, {}});
#endif

    pin_main(true);
    // The same net? Its first position's values side by side.
    std::string check;
    for (Contestant& c : all) {
      c.pass();
      const float v = &c - all.data() < static_cast<std::ptrdiff_t>(theirs.size())
                          ? theirs[static_cast<std::size_t>(&c - all.data())]->value()[0]
                          : value[0];
      check += fmt::format(" {:.4f}", v);
    }
    for (int round = 0; round < rounds; ++round) {
      for (Contestant& c : all) {
        constexpr double kLeast = 100;
        // Let the other library's threads, which wait by spinning, fall asleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        c.pass();
        const auto start = std::chrono::steady_clock::now();
        int passes = 0;
        double passed = 0;
        while (passed < kLeast) {
          c.pass();
          ++passes;
          passed =
              std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
                  .count();
        }
        c.milliseconds.push_back(passed / (passes * batch));
      }
    }
    fmt::print("{}, batch {}, {} threads, medians of {} rounds; values of the first position:{}\n",
               shape, batch, kThreads, rounds, check);
    for (const Contestant& c : all) {
      std::vector<double> ratios;
      for (std::size_t i = 0; i < c.milliseconds.size(); ++i)
        ratios.push_back(all.front().milliseconds[i] / c.milliseconds[i]);
      const auto [low, high] = std::ranges::minmax(ratios);
      fmt::print("  {:<44}{:>9.4f} ms/position{:>8.2f}x {} ({:.2f} to {:.2f})\n", c.name,
                 median(c.milliseconds), median(ratios), all.front().name, low, high);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tahl::nn

int main(int argc, char** argv) {
  std::vector<int> batches;
  for (int i = 3; i < argc; ++i) batches.push_back(std::atoi(argv[i]));
  if (batches.empty()) batches = {1, 8, 32, 128};
  try {
    return tahl::nn::run(argc > 1 ? argv[1] : "rdt", argc > 2 ? std::atoi(argv[2]) : 7, batches);
  } catch (const dnnl::error& error) {
    fmt::print(stderr, "bench_nn: oneDNN: {}\n", error.message);
    return 1;
  }
}
