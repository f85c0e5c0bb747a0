#pragma once

#include <torch/torch.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "chess/error.h"
#include "nn/arch.h"
#include "nn/net_file.h"
#include "nn/network.h"

namespace tahl::nn {

// An architecture on LibTorch, for training: parameters and buffers are registered under the names
// of list_parameters(), so named_parameters() and state dicts agree with the files. They start as
// PyTorch's layers do, from torch's generator (torch::manual_seed).
class TorchNetwork : public torch::nn::Module {
 public:
  // Precondition: the config is valid.
  explicit TorchNetwork(const ArchConfig& config);

  // planes [n, input_planes, 8, 8] -> logits [n, policy_outputs] and values [n], or [n, 3] of win,
  // draw and loss; fp32 also under autocast. Batch norm follows is_training().
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor planes);

  const ArchConfig& config() const { return config_; }
  // The parameter or buffer of that name. Precondition: there is one.
  const torch::Tensor& tensor(const std::string& name) const { return tensors_.at(name); }

 private:
  ArchConfig config_;
  std::unordered_map<std::string, torch::Tensor> tensors_;
};

// Weights and running statistics as a file, in fp32, from whatever device they are on.
NetFile export_net(const TorchNetwork& network, const std::string& encoding,
                   std::map<std::string, std::string> metadata);
// Copies the file's tensors into `network`. Refuses a file of another architecture.
Expected<void> import_net(const NetFile& net, TorchNetwork& network);

// The same seam as the CPU network, in eval mode without gradients: the reference that parity tests
// compare with.
Expected<std::unique_ptr<Network>> make_torch_network(const NetFile& net);

}  // namespace tahl::nn
