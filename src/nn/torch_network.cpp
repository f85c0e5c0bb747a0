#include "nn/torch_network.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "nn/arch_run.h"

namespace tahl::nn {
namespace {

// Torch's momentum of the running statistics, its default.
constexpr double kBatchNormMomentum = 0.1;

class TorchOps {
 public:
  using Value = torch::Tensor;

  TorchOps(const std::unordered_map<std::string, torch::Tensor>& tensors, torch::Tensor input,
           bool training)
      : tensors_(tensors), input_(std::move(input)), training_(training) {}

  Value input() { return input_; }
  Value conv(const std::string& name, const Value& x, const ConvOptions& options) {
    const torch::Tensor bias = options.bias ? at(name, ".bias") : torch::Tensor();
    return torch::conv2d(x, at(name, ".weight"), bias, 1, options.kernel / 2);
  }
  Value batch_norm(const std::string& name, const Value& x) {
    return torch::batch_norm(x, at(name, ".weight"), at(name, ".bias"), at(name, ".running_mean"),
                             at(name, ".running_var"), training_, kBatchNormMomentum,
                             kBatchNormEpsilon, /*cudnn_enabled=*/true);
  }
  Value linear(const std::string& name, const Value& x, int) {
    return torch::linear(x, at(name, ".weight"), at(name, ".bias"));
  }
  Value relu(const Value& x) { return torch::relu(x); }
  Value sigmoid(const Value& x) { return torch::sigmoid(x); }
  Value tanh(const Value& x) { return torch::tanh(x); }
  Value mish(const Value& x) { return torch::mish(x); }
  Value selu(const Value& x) { return torch::selu(x); }
  Value softmax(const Value& x) { return torch::softmax(x, 1); }
  Value attention_policy(const std::string& name, const Value& queries, const Value& keys) {
    const torch::Tensor q = queries.flatten(2).transpose(1, 2);  // [n, 64, c]
    const torch::Tensor k = keys.flatten(2);                     // [n, c, 64]
    const double scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
    const torch::Tensor plain = torch::matmul(q, k) * scale;  // [n, from, to]
    const torch::Tensor offsets = torch::matmul(at(name, ".weight"), k.slice(2, 56));  // [n, 4, 8]
    const torch::Tensor promotions = (offsets.slice(1, 0, 3) + offsets.slice(1, 3)).transpose(1, 2);
    const torch::Tensor last = plain.slice(1, 48, 56).slice(2, 56).unsqueeze(3);  // [n, 8, 8, 1]
    return torch::cat({plain.flatten(1), (last + promotions.unsqueeze(1)).flatten(1)}, 1);
  }
  Value add(const Value& x, const Value& y) { return x + y; }
  Value mean_pool(const Value& x) { return x.mean(torch::IntArrayRef{2, 3}); }
  Value flatten(const Value& x) { return x.flatten(1); }
  Value concat(const Value& x, const Value& y) { return torch::cat({x, y}, 1); }
  Value scale_bias(const Value& x, const Value& both) {
    const auto halves = both.unsqueeze(2).unsqueeze(3).chunk(2, 1);
    return torch::sigmoid(halves[0]) * x + halves[1];
  }
  Value mix(const Value& z, const Value& a, const Value& b) { return b + z * (a - b); }

 private:
  const torch::Tensor& at(const std::string& name, const char* suffix) const {
    return tensors_.at(name + suffix);
  }

  const std::unordered_map<std::string, torch::Tensor>& tensors_;
  torch::Tensor input_;
  bool training_;
};

torch::Tensor starting_tensor(const ParameterSpec& spec) {
  torch::NoGradGuard no_grad;
  torch::Tensor tensor = torch::empty(spec.shape, torch::kFloat);
  const bool drawn = spec.kind == ParameterKind::Weight || spec.kind == ParameterKind::Bias;
  if (!drawn || spec.start != 0) return tensor.fill_(spec.start);
  // torch.nn.Conv2d and Linear: kaiming_uniform_(a=sqrt(5)) comes to this bound, for biases too.
  const double bound = 1 / std::sqrt(static_cast<double>(spec.fan_in));
  return tensor.uniform_(-bound, bound);
}

// "tower.0.bn1" -> the module two levels down, made on the way: torch wants no dots in names.
torch::nn::Module& descend(torch::nn::Module& root, const std::string& path) {
  torch::nn::Module* module = &root;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    const auto children = module->named_children();
    const auto* child = children.find(name);
    module = child != nullptr
                 ? child->get()
                 : module->register_module(name, std::make_shared<torch::nn::Module>(name)).get();
    begin = end + 1;
  }
  return *module;
}

class TorchInference : public Network {
 public:
  TorchInference(NetInfo info, std::shared_ptr<TorchNetwork> network)
      : info_(std::move(info)), network_(std::move(network)) {}

  const NetInfo& info() const override { return info_; }

  void forward(std::span<const float> planes, int n, const WantedOutputs&, std::span<float> policy,
               std::span<float> value) override {
    torch::NoGradGuard no_grad;
    const torch::Tensor input =
        torch::from_blob(const_cast<float*>(planes.data()), {n, info_.input_planes, 8, 8});
    const auto [logits, values] = network_->forward(input);
    std::memcpy(policy.data(), logits.contiguous().data_ptr<float>(), policy.size_bytes());
    std::memcpy(value.data(), values.contiguous().data_ptr<float>(), value.size_bytes());
  }

  std::unique_ptr<Network> clone() const override {
    return std::make_unique<TorchInference>(info_, network_);
  }

 private:
  NetInfo info_;
  std::shared_ptr<TorchNetwork> network_;
};

}  // namespace

TorchNetwork::TorchNetwork(const ArchConfig& config) : config_(config) {
  for (const ParameterSpec& spec : list_parameters(config)) {
    const std::size_t dot = spec.name.rfind('.');
    torch::nn::Module& module = descend(*this, spec.name.substr(0, dot));
    const std::string leaf = spec.name.substr(dot + 1);
    tensors_[spec.name] = spec.is_statistic()
                              ? module.register_buffer(leaf, starting_tensor(spec))
                              : module.register_parameter(leaf, starting_tensor(spec));
  }
}

std::pair<torch::Tensor, torch::Tensor> TorchNetwork::forward(torch::Tensor planes) {
  TorchOps ops(tensors_, std::move(planes), is_training());
  const auto outputs = run_architecture(config_, ops);
  const torch::Tensor value = outputs.value.to(torch::kFloat);
  return {outputs.policy.to(torch::kFloat), config_.wdl ? value : value.flatten()};
}

NetFile export_net(const TorchNetwork& network, const std::string& encoding,
                   std::map<std::string, std::string> metadata) {
  NetFile net{network.config(), encoding, std::move(metadata), {}};
  for (const ParameterSpec& spec : list_parameters(network.config())) {
    const torch::Tensor tensor =
        network.tensor(spec.name).detach().to(torch::kCPU, torch::kFloat).contiguous();
    const float* data = tensor.data_ptr<float>();
    net.tensors[spec.name] = {spec.shape, std::vector<float>(data, data + tensor.numel())};
  }
  return net;
}

Expected<void> import_net(const NetFile& net, TorchNetwork& network) {
  if (net.arch != network.config()) {
    return fail("net: architecture {} is not the network's {}", to_json(net.arch),
                to_json(network.config()));
  }
  if (auto ok = check_tensors(net); !ok) return ok;
  torch::NoGradGuard no_grad;
  for (const auto& [name, data] : net.tensors) {
    network.tensor(name).copy_(
        torch::from_blob(const_cast<float*>(data.data.data()), data.shape, torch::kFloat));
  }
  return {};
}

Expected<std::unique_ptr<Network>> make_torch_network(const NetFile& net) {
  if (auto ok = validate(net.arch); !ok) return tl::unexpected(ok.error());
  auto network = std::make_shared<TorchNetwork>(net.arch);
  if (auto ok = import_net(net, *network); !ok) return tl::unexpected(ok.error());
  network->eval();
  return std::make_unique<TorchInference>(NetInfo{.arch = net.arch,
                                                  .encoding = net.encoding,
                                                  .input_planes = net.arch.input_planes,
                                                  .policy_outputs = policy_outputs(net.arch),
                                                  .value_outputs = value_outputs(net.arch),
                                                  .metadata = net.metadata,
                                                  .arithmetic = "torch"},
                                          std::move(network));
}

}  // namespace tahl::nn
