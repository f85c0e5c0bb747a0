#include "nn/cpu_program.h"

#include <algorithm>
#include <cmath>
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
    Mish,
    Selu,
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
  Value mish(Value x) { return like(x, Node::Op::Mish, {x}); }
  Value selu(Value x) { return like(x, Node::Op::Selu, {x}); }
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

class Compiler {
 public:
  Compiler(const NetFile& net, const CpuKernels& kernels) : net_(net) {
    program_.kernels = &kernels;
  }

  CpuProgram run() {
    GraphBuilder graph(net_.arch.input_planes);
    const auto outputs = run_architecture(net_.arch, graph);
    nodes_ = &graph.nodes();
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
    return std::move(program_);
  }

 private:
  const std::vector<float>& tensor(const std::string& name) const {
    return net_.tensors.at(name).data;
  }
  int step_of(int node) const { return step_of_[static_cast<std::size_t>(node)]; }
  CpuStep& step(int index) { return program_.steps[static_cast<std::size_t>(index)]; }
  // Whether nobody but the one who asks reads this node's result, so that it may be changed.
  bool is_private(int node) const { return uses_[static_cast<std::size_t>(node)] == 1; }

  int translate(const Node& node) {
    switch (node.op) {
      case Node::Op::Input:
        return push(Kind::Input, node);
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
          const bool fits = a.kind == Kind::Conv || a.kind == Kind::ScaleBias;
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
        return push(Kind::Flatten, node);
      case Node::Op::Concat:
        return push(Kind::Concat, node);
      case Node::Op::ScaleBias:
        return push(Kind::ScaleBias, node);
      case Node::Op::Mix:
        return push(Kind::Mix, node);
      case Node::Op::Mish:
        return push(Kind::Mish, node);
      case Node::Op::Selu:
        return push(Kind::Selu, node);
      case Node::Op::Softmax:
        return push(Kind::Softmax, node);
      case Node::Op::AttentionPolicy: {
        const int index = push(Kind::AttentionPolicy, node);
        step(index).weights = tensor(node.name + ".weight");
        return index;
      }
    }
    return -1;
  }

  static bool can_activate(const CpuStep& made, Activation activation) {
    if (made.activation != Activation::None) return false;
    if (made.kind == Kind::Conv || made.kind == Kind::ScaleBias) return true;
    return made.kind == Kind::Linear && activation == Activation::Relu;
  }

  int push(Kind kind, const Node& node) {
    CpuStep made;
    made.kind = kind;
    for (int input : node.inputs) made.inputs.push_back(step_of(input));
    made.channels = node.channels;
    made.is_board = node.is_board;
    program_.steps.push_back(std::move(made));
    return static_cast<int>(program_.steps.size() - 1);
  }

  // norm(conv(x)) = conv'(x): weights times g = weight / sqrt(var + eps), and a bias.
  int conv(const Node& node) {
    const int index = push(Kind::Conv, node);
    CpuStep& made = step(index);
    made.kernel = node.kernel;
    const auto out = static_cast<std::size_t>(node.channels);
    std::vector<float> weights = tensor(node.name + ".weight");
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
    const int in = (*nodes_)[static_cast<std::size_t>(node.inputs[0])].channels;
    made.weights.resize(packed_conv_size(node.channels, in, node.kernel));
    pack_conv(weights, node.channels, in, node.kernel, program_.kernels->block, made.weights);
    return index;
  }

  int linear(const Node& node) {
    const int index = push(Kind::Linear, node);
    CpuStep& made = step(index);
    const auto in =
        static_cast<std::size_t>((*nodes_)[static_cast<std::size_t>(node.inputs[0])].channels);
    const auto out = static_cast<std::size_t>(node.channels);
    const auto padded_in = static_cast<std::size_t>(pad(static_cast<int>(in)));
    const std::vector<float>& weights = tensor(node.name + ".weight");
    made.weights.assign(padded_in * static_cast<std::size_t>(pad(node.channels)), 0);
    for (std::size_t o = 0; o < out; ++o) {
      std::copy_n(&weights[o * in], in, &made.weights[o * padded_in]);
    }
    made.bias.assign(static_cast<std::size_t>(pad(node.channels)), 0);
    std::ranges::copy(tensor(node.name + ".bias"), made.bias.begin());
    return index;
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
      int slot = -1;
      for (std::size_t s = 0; s < program_.slots.size(); ++s) {
        if (program_.slots[s] == step(i).size() && free_from[s] < i) slot = static_cast<int>(s);
      }
      if (slot < 0) {
        slot = static_cast<int>(program_.slots.size());
        program_.slots.push_back(step(i).size());
        free_from.push_back(0);
      }
      step(i).slot = slot;
      free_from[static_cast<std::size_t>(slot)] =
          std::max(i, last_use[static_cast<std::size_t>(i)]);
    }
  }

  const NetFile& net_;
  CpuProgram program_;
  const std::vector<Node>* nodes_ = nullptr;
  std::vector<int> uses_;
  std::vector<int> step_of_;
};

}  // namespace

CpuProgram compile_for_cpu(const NetFile& net, const CpuKernels& kernels) {
  return Compiler(net, kernels).run();
}

}  // namespace tahl::nn
