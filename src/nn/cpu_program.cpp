#include "nn/cpu_program.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "nn/arch_run.h"
#include "nn/cpu_ops.h"

namespace tahl::nn {
namespace {

using Kind = CpuStep::Kind;

// What the architecture asked for, one node an operation, before anything is joined.
struct Node {
  enum class Op {
    Input,
    Conv,
    Norm,
    Linear,
    Activate,
    Add,
    Pool,
    Flatten,
    Concat,
    ScaleBias,
    Mix,
    Softmax,
    AttentionPolicy
  };
  Op op{};
  std::vector<int> inputs{};
  int channels = 0;
  bool is_board = true;
  std::string name{};
  int kernel = 0;
  bool bias = false;
  Activation activation = Activation::None;
};

class GraphBuilder {
 public:
  using Value = int;

  explicit GraphBuilder(int input_planes) : input_planes_(input_planes) {}

  Value input() { return push({.op = Node::Op::Input, .channels = input_planes_}); }
  Value conv(const std::string& name, Value x, const ConvOptions& options) {
    return push({.op = Node::Op::Conv,
                 .inputs = {x},
                 .channels = options.out,
                 .name = name,
                 .kernel = options.kernel,
                 .bias = options.bias});
  }
  Value batch_norm(const std::string& name, Value x) {
    return push({.op = Node::Op::Norm, .inputs = {x}, .channels = channels(x), .name = name});
  }
  Value linear(const std::string& name, Value x, int out) {
    return push(
        {.op = Node::Op::Linear, .inputs = {x}, .channels = out, .is_board = false, .name = name});
  }
  Value relu(Value x) { return activate(x, Activation::Relu); }
  Value sigmoid(Value x) { return activate(x, Activation::Sigmoid); }
  Value tanh(Value x) { return activate(x, Activation::Tanh); }
  Value mish(Value x) { return activate(x, Activation::Mish); }
  Value selu(Value x) { return activate(x, Activation::Selu); }
  Value softmax(Value x) { return like(x, Node::Op::Softmax, {x}); }
  Value attention_policy(const std::string& name, Value queries, Value keys) {
    return push({.op = Node::Op::AttentionPolicy,
                 .inputs = {queries, keys},
                 .channels = kAttentionOutputs,
                 .is_board = false,
                 .name = name});
  }
  Value add(Value x, Value y) { return like(x, Node::Op::Add, {x, y}); }
  Value mean_pool(Value x) {
    return push({.op = Node::Op::Pool, .inputs = {x}, .channels = channels(x), .is_board = false});
  }
  Value flatten(Value x) {
    return push(
        {.op = Node::Op::Flatten, .inputs = {x}, .channels = channels(x) * 64, .is_board = false});
  }
  Value concat(Value x, Value y) {
    return push({.op = Node::Op::Concat, .inputs = {x, y}, .channels = channels(x) + channels(y)});
  }
  Value scale_bias(Value x, Value both) { return like(x, Node::Op::ScaleBias, {x, both}); }
  Value mix(Value z, Value a, Value b) { return like(z, Node::Op::Mix, {z, a, b}); }

  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  int channels(Value x) const { return nodes_[static_cast<std::size_t>(x)].channels; }
  Value push(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<Value>(nodes_.size() - 1);
  }
  Value like(Value x, Node::Op op, std::vector<int> inputs) {
    const Node& model = nodes_[static_cast<std::size_t>(x)];
    return push({.op = op,
                 .inputs = std::move(inputs),
                 .channels = model.channels,
                 .is_board = model.is_board});
  }
  Value activate(Value x, Activation activation) {
    const Value node = like(x, Node::Op::Activate, {x});
    nodes_.back().activation = activation;
    return node;
  }

  int input_planes_;
  std::vector<Node> nodes_;
};

// Whether only 3x3 convolutions read the planes; they do so by themselves (CpuStep::Kind::Stem).
bool is_read_by_stems(const std::vector<Node>& nodes, int input) {
  return std::ranges::none_of(nodes, [input](const Node& reader) {
    return std::ranges::count(reader.inputs, input) != 0 &&
           (reader.op != Node::Op::Conv || reader.kernel != 3);
  });
}

// The 3x3 convolution whose results are the policy as they are, or -1 (CpuStep::Kind::Points).
int policy_conv3(const std::vector<Node>& nodes, int policy) {
  const Node& flatten = nodes[static_cast<std::size_t>(policy)];
  if (flatten.op != Node::Op::Flatten) return -1;
  const int made = flatten.inputs[0];
  const Node& conv = nodes[static_cast<std::size_t>(made)];
  return conv.op == Node::Op::Conv && conv.kernel == 3 ? made : -1;
}

class Compiler {
 public:
  Compiler(const NetFile& net, const CpuKernels& kernels, ConvMethod method,
           const Int8Ranges& ranges)
      : net_(net), ranges_(ranges) {
    program_.kernels = &kernels;
    program_.method = method;
    // Enough positions to make use of each weight once it is loaded, few enough that their boards
    // and transformed tiles stay in the second-level cache.
    program_.chunk = pad(net.arch.channels) <= 256 ? 8 : 4;
  }

  CpuProgram run() {
    GraphBuilder graph(net_.arch.input_planes);
    const auto outputs = run_architecture(net_.arch, graph);
    nodes_ = &graph.nodes();
    policy_node_ = outputs.policy;
    policy_conv_ = policy_conv3(*nodes_, policy_node_);
    uses_.assign(nodes_->size(), 0);
    for (const Node& node : *nodes_) {
      for (int input : node.inputs) ++uses_[static_cast<std::size_t>(input)];
    }
    for (const int output : {outputs.policy, outputs.value})
      ++uses_[static_cast<std::size_t>(output)];
    for (const Node& node : *nodes_) step_of_.push_back(translate(node));
    program_.policy = step_of(outputs.policy);
    program_.value = step_of(outputs.value);
    assign_slots();
    place_barriers();
    program_.weights = make_cpu_bytes(stored_.size());
    std::ranges::copy(stored_, program_.weights.get());
    return std::move(program_);
  }

 private:
  const std::vector<float>& tensor(const std::string& name) const {
    return net_.tensors.at(name).data;
  }
  int step_of(int node) const { return step_of_[static_cast<std::size_t>(node)]; }
  CpuStep& step(int index) { return program_.steps[static_cast<std::size_t>(index)]; }
  int index_of(const Node& node) const { return static_cast<int>(&node - nodes_->data()); }
  const Node& node(int index) const { return (*nodes_)[static_cast<std::size_t>(index)]; }
  // Whether nobody but the one who asks reads this node's result, so that it may be changed.
  bool is_private(int node) const { return uses_[static_cast<std::size_t>(node)] == 1; }

  int translate(const Node& node) {
    switch (node.op) {
      case Node::Op::Input:
        return is_read_by_stems(*nodes_, index_of(node)) ? -1 : push(Kind::Input, node);
      case Node::Op::Conv:
        return conv(node);
      case Node::Op::Norm:
        // The architecture builds every norm right behind its convolution; conv() has folded it.
        return step_of(node.inputs[0]);
      case Node::Op::Linear:
        return linear(node);
      case Node::Op::Activate: {
        const int made = step_of(node.inputs[0]);
        if (is_private(node.inputs[0]) && can_activate(step(made), node.activation)) {
          step(made).activation = node.activation;
          return made;
        }
        const int index = push(Kind::Activate, node);
        step(index).activation = node.activation;
        return index;
      }
      case Node::Op::Add:
        for (const int side : {0, 1}) {
          const int node_a = node.inputs[static_cast<std::size_t>(side)];
          const int node_b = node.inputs[static_cast<std::size_t>(1 - side)];
          CpuStep& a = step(step_of(node_a));
          const bool fits =
              a.kind == Kind::Conv3 || a.kind == Kind::Conv1 || a.kind == Kind::ScaleBias;
          if (fits && is_private(node_a) && a.residual < 0 && a.activation == Activation::None &&
              step_of(node_b) < step_of(node_a)) {
            a.residual = step_of(node_b);
            return step_of(node_a);
          }
        }
        return push(Kind::Add, node);
      case Node::Op::Pool:
        return push(Kind::Pool, node);
      case Node::Op::Flatten:
        if (node.inputs[0] == policy_conv_) return step_of(policy_conv_);
        // Linear layers read the board itself; only rows of a policy want floats.
        if (is_read_by_linears(index_of(node))) return step_of(node.inputs[0]);
        return push(Kind::Flatten, node);
      case Node::Op::Concat:
        return push(Kind::Concat, node);
      case Node::Op::ScaleBias:
        return push(Kind::ScaleBias, node);
      case Node::Op::Mix:
        return push(Kind::Mix, node);
      case Node::Op::Softmax:
        return push(Kind::Softmax, node);
      case Node::Op::AttentionPolicy: {
        // It reads floats: [square][pad(channels)].
        std::vector<int> floats;
        for (const int input : node.inputs) {
          Node flat{.op = Node::Op::Flatten, .inputs = {input}, .is_board = false};
          flat.channels = this->node(input).channels * 64;
          floats.push_back(push(Kind::Flatten, flat));
        }
        const int index = push(Kind::AttentionPolicy, node);
        step(index).inputs = floats;
        step(index).scale = tensor(node.name + ".weight");
        return index;
      }
    }
    return -1;
  }

  static bool can_activate(const CpuStep& made, Activation activation) {
    if (made.activation != Activation::None) return false;
    if (made.kind == Kind::Conv3 || made.kind == Kind::Conv1 || made.kind == Kind::ScaleBias)
      return true;
    return (made.kind == Kind::Linear || made.kind == Kind::Stem) && activation == Activation::Relu;
  }

  int push(Kind kind, const Node& node) {
    CpuStep made;
    made.kind = kind;
    for (int input : node.inputs)
      if (step_of(input) >= 0) made.inputs.push_back(step_of(input));
    made.channels = node.channels;
    made.is_board = node.is_board;
    made.name = node.name;
    made.size = static_cast<std::size_t>(pad(node.channels));
    if (kind == Kind::Flatten) made.size = static_cast<std::size_t>(64 * pad(node.channels / 64));
    program_.steps.push_back(std::move(made));
    return static_cast<int>(program_.steps.size() - 1);
  }

  // norm(conv(x)) = conv'(x): weights times g = weight / sqrt(var + eps), and a bias.
  int conv(const Node& node) {
    const CpuKernels& kernels = *program_.kernels;
    const int in = this->node(node.inputs[0]).channels;
    const bool is_stem = node.kernel == 3 && step_of(node.inputs[0]) < 0;
    const bool is_policy = index_of(node) == policy_conv_;
    int prepared = -1;
    if (node.kernel == 3 && !is_stem && !is_policy &&
        (program_.method == ConvMethod::Winograd ? kernels.prepare_winograd
                                                 : kernels.prepare_direct)) {
      prepared = push(Kind::Prepare, node);
      step(prepared).channels = in;
      if (kernels.arithmetic == Arithmetic::Int8)
        step(prepared).prepare_scale = 255 / ranges_.at(node.name);
    }
    const int index = push(is_stem            ? Kind::Stem
                           : is_policy        ? Kind::Points
                           : node.kernel == 3 ? Kind::Conv3
                                              : Kind::Conv1,
                           node);
    CpuStep& made = step(index);
    if (prepared >= 0) made.inputs[0] = prepared;
    const auto out = static_cast<std::size_t>(node.channels);
    std::vector<float> weights = tensor(node.name + ".weight");
    program_.macs += static_cast<double>(weights.size()) * 64;
    if (share_weights(index)) return index;
    made.bias.assign(static_cast<std::size_t>(pad(node.channels)), 0);
    if (node.bias) std::ranges::copy(tensor(node.name + ".bias"), made.bias.begin());
    const std::size_t next = static_cast<std::size_t>(&node - nodes_->data()) + 1;
    if (next < nodes_->size() && (*nodes_)[next].op == Node::Op::Norm) {
      const std::string& norm = (*nodes_)[next].name;
      const std::size_t row = weights.size() / out;
      for (std::size_t o = 0; o < out; ++o) {
        const float gain = tensor(norm + ".weight")[o] /
                           std::sqrt(tensor(norm + ".running_var")[o] + kBatchNormEpsilon);
        for (std::size_t i = 0; i < row; ++i) weights[o * row + i] *= gain;
        made.bias[o] =
            (made.bias[o] - tensor(norm + ".running_mean")[o]) * gain + tensor(norm + ".bias")[o];
      }
    }
    if (is_stem) {
      made.inputs.clear();
      made.weights = store<float>(pack_stem(kernels, weights, node.channels, in));
      return index;
    }
    if (is_policy) {
      // [out][tap][pad(in)]
      const auto channels = static_cast<std::size_t>(in),
                 stride = static_cast<std::size_t>(pad(in));
      std::vector<float> points(out * 9 * stride);
      for (std::size_t o = 0; o < out; ++o)
        for (std::size_t c = 0; c < channels; ++c)
          for (std::size_t tap = 0; tap < 9; ++tap)
            points[(o * 9 + tap) * stride + c] = weights[(o * channels + c) * 9 + tap];
      store_numbers(made, points);
      return index;
    }
    PackedConv packed =
        pack_conv(kernels, program_.method, weights, node.channels, in, node.kernel);
    made.weights = store<std::uint32_t>(packed.words);
    made.scale = std::move(packed.scale);
    if (prepared >= 0)
      for (float& scale : made.scale) scale /= step(prepared).prepare_scale;
    return index;
  }

  // Layers of one name have the same weights: a recurrent net's are kept once, or they would not
  // fit the cache twice over.
  bool share_weights(int index) {
    CpuStep& made = step(index);
    const auto [first, is_first] = layers_.try_emplace(made.name, index);
    if (is_first) return false;
    const CpuStep& same = step(first->second);
    made.weights = same.weights;
    made.is_half = same.is_half;
    made.bias = same.bias;
    made.scale = same.scale;
    return true;
  }

  bool is_read_by_linears(int flatten) const {
    return flatten != policy_node_ && std::ranges::none_of(*nodes_, [&](const Node& reader) {
             return std::ranges::count(reader.inputs, flatten) != 0 &&
                    (reader.op != Node::Op::Linear || index_of(reader) == policy_node_);
           });
  }

  int linear(const Node& node) {
    const bool is_policy = index_of(node) == policy_node_;
    const int index = push(is_policy ? Kind::Rows : Kind::Linear, node);
    CpuStep& made = step(index);
    const Node& input = this->node(node.inputs[0]);
    const auto in = static_cast<std::size_t>(input.channels);
    const auto out = static_cast<std::size_t>(node.channels);
    const CpuStep& from = step(made.inputs[0]);
    const std::size_t padded_in = from.is_board ? 64 * from.size : from.size;
    const std::vector<float>& weights = tensor(node.name + ".weight");
    program_.macs += static_cast<double>(weights.size());
    if (share_weights(index)) return index;
    // PyTorch flattens by channels, we by squares.
    const bool by_squares = input.op == Node::Op::Flatten;
    const auto column = [&](std::size_t i) {
      return by_squares ? i % 64 * (padded_in / 64) + i / 64 : i;
    };
    if (from.is_board) {
      std::vector<float> rows(out * padded_in);
      for (std::size_t o = 0; o < out; ++o)
        for (std::size_t i = 0; i < in; ++i) rows[o * padded_in + column(i)] = weights[o * in + i];
      made.weights = store<std::uint32_t>(pack_conv(*program_.kernels, ConvMethod::Direct, rows,
                                                    node.channels, static_cast<int>(padded_in), 1)
                                              .words);
    } else {
      std::vector<float> packed(padded_in * made.size, 0);
      const auto block = static_cast<std::size_t>(program_.kernels->block);
      for (std::size_t o = 0; o < out; ++o) {
        for (std::size_t i = 0; i < in; ++i) {
          const std::size_t at = is_policy
                                     ? o * padded_in + column(i)
                                     : (o / block * padded_in + column(i)) * block + o % block;
          packed[at] = weights[o * in + i];
        }
      }
      store_numbers(made, packed);
    }
    made.bias.assign(made.size, 0);
    std::ranges::copy(tensor(node.name + ".bias"), made.bias.begin());
    return index;
  }

  // Weights that are read one row at a time: halves unless all is done in floats.
  void store_numbers(CpuStep& made, const std::vector<float>& numbers) {
    made.is_half = program_.kernels->arithmetic != Arithmetic::Fp32;
    if (!made.is_half) {
      made.weights = store<float>(numbers);
      return;
    }
    std::vector<std::uint16_t> halves;
    halves.reserve(numbers.size());
    for (const float x : numbers) halves.push_back(bfloat16_from_float(x));
    made.weights = store<std::uint16_t>(halves);
  }

  // Keeps a step's weights, from a cache line on; returns where.
  template <class T>
  std::size_t store(std::span<const T> weights) {
    const std::size_t at = (stored_.size() + 63) / 64 * 64;
    stored_.resize(at + weights.size_bytes());
    std::memcpy(stored_.data() + at, weights.data(), weights.size_bytes());
    return at;
  }

  // Bytes of a step's result for a whole chunk.
  std::size_t bytes(const CpuStep& s) const {
    const CpuKernels& kernels = *program_.kernels;
    const auto chunk = static_cast<std::size_t>(program_.chunk);
    if (!s.is_board) return s.size * sizeof(float) * chunk;
    return static_cast<std::size_t>(pad(s.channels) * 64 * kernels.cell_bytes) * chunk;
  }

  // The rest write elsewhere.
  static bool has_slot(const CpuStep& s) {
    return s.kind != Kind::Prepare && s.kind != Kind::Rows && s.kind != Kind::Points;
  }

  // A slot is free again once the last step that reads it has run. First fit by size: a network has
  // boards of two or three sizes, so a handful of slots serve any depth.
  void assign_slots() {
    const int count = static_cast<int>(program_.steps.size());
    std::vector<int> last_use(program_.steps.size(), -1);
    for (int i = 0; i < count; ++i) {
      for (int input : step(i).inputs) last_use[static_cast<std::size_t>(input)] = i;
      if (step(i).residual >= 0) last_use[static_cast<std::size_t>(step(i).residual)] = i;
    }
    for (const int output : {program_.policy, program_.value}) {
      last_use[static_cast<std::size_t>(output)] = count;
    }
    std::vector<int> free_from;  // of a slot: the step after which it may be written
    for (int i = 0; i < count; ++i) {
      if (step(i).kind == Kind::Prepare) {
        program_.prepared = std::max(
            program_.prepared,
            prepared_bytes(*program_.kernels, program_.method, step(i).channels, program_.chunk));
        continue;
      }
      if (!has_slot(step(i))) continue;
      int slot = -1;
      for (std::size_t s = 0; s < program_.slots.size(); ++s) {
        if (program_.slots[s] == bytes(step(i)) && free_from[s] < i) slot = static_cast<int>(s);
      }
      if (slot < 0) {
        slot = static_cast<int>(program_.slots.size());
        program_.slots.push_back(bytes(step(i)));
        free_from.push_back(0);
      }
      step(i).slot = slot;
      free_from[static_cast<std::size_t>(slot)] =
          std::max(i, last_use[static_cast<std::size_t>(i)]);
    }
    if (program_.method == ConvMethod::Winograd)
      program_.scratch = scratch_floats(*program_.kernels, program_.chunk);
  }

  // Threads that share a position each own some channels of every board (CpuNetwork), the same of
  // all boards with as many. A step that reads or overwrites what may be another thread's must wait
  // for all to have come so far. What a convolution prepares each thread makes for itself, whole:
  // to read a board from another core's cache costs less than to share what is twice its size.
  void place_barriers() {
    struct Access {
      int slot;
      bool writes;
      int owned;  // channels of the board if only the thread's own are touched, else 0
    };
    const auto accesses_of = [&](const CpuStep& s) {
      std::vector<Access> accesses;
      const bool only_own = s.kind == Kind::Mix || s.kind == Kind::Add ||
                            s.kind == Kind::Activate || s.kind == Kind::Pool ||
                            s.kind == Kind::Flatten || s.kind == Kind::ScaleBias;
      for (const int input : s.inputs) {
        const CpuStep& in = step(input);
        if (in.kind != Kind::Prepare)
          accesses.push_back({in.slot, false, only_own && in.is_board ? pad(in.channels) : 0});
      }
      if (s.residual >= 0) {
        const CpuStep& in = step(s.residual);
        accesses.push_back({in.slot, false, pad(in.channels)});
      }
      const bool by_channels = s.is_board && s.kind != Kind::Input && s.kind != Kind::Concat;
      if (has_slot(s)) accesses.push_back({s.slot, true, by_channels ? pad(s.channels) : 0});
      return accesses;
    };
    std::vector<Access> since;  // the last barrier
    for (CpuStep& s : program_.steps) {
      const std::vector<Access> accesses = accesses_of(s);
      for (const Access& now : accesses) {
        for (const Access& then : since) {
          const bool apart = now.slot != then.slot || (!now.writes && !then.writes) ||
                             (now.owned != 0 && now.owned == then.owned);
          if (!apart) s.barrier = true;
        }
      }
      if (s.barrier) since.clear();
      since.insert(since.end(), accesses.begin(), accesses.end());
    }
  }

  const NetFile& net_;
  const Int8Ranges& ranges_;
  CpuProgram program_;
  const std::vector<Node>* nodes_ = nullptr;
  int policy_node_ = -1, policy_conv_ = -1;
  std::vector<std::byte> stored_;
  std::map<std::string, int> layers_;  // the first step with the weights of that name
  std::vector<int> uses_;
  std::vector<int> step_of_;
};

}  // namespace

std::vector<std::string> int8_layers(const ArchConfig& arch) {
  GraphBuilder graph(arch.input_planes);
  const auto outputs = run_architecture(arch, graph);
  const std::vector<Node>& nodes = graph.nodes();
  std::set<std::string> names;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].op != Node::Op::Conv || nodes[i].kernel != 3) continue;
    const int input = nodes[i].inputs[0];
    const bool is_stem = nodes[static_cast<std::size_t>(input)].op == Node::Op::Input &&
                         is_read_by_stems(nodes, input);
    if (!is_stem && static_cast<int>(i) != policy_conv3(nodes, outputs.policy))
      names.insert(nodes[i].name);
  }
  return {names.begin(), names.end()};
}

CpuProgram compile_for_cpu(const NetFile& net, const CpuKernels& kernels, ConvMethod method,
                           const Int8Ranges& ranges) {
  return Compiler(net, kernels, method, ranges).run();
}

}  // namespace tahl::nn
