#pragma once

#include <stop_token>
#include <string>

#include "learn/dataset.h"
#include "nn/torch_network.h"

namespace tahl::learn {

// How well a net guesses moves and results of games it has not seen.
struct Heldout {
  std::uint64_t positions = 0;
  double top1 = 0,
         top3 = 0;       // share of moves played that are its first choice, among its first three
  double nll = 0;        // mean -log p(move played), natural logarithm
  double value_mse = 0;  // of the result for the side to move, in [-1, 1]
  double top1_error = 0, top3_error = 0, nll_error = 0,
         value_mse_error = 0;  // standard errors, positions as independent
};
std::string to_json(const Heldout& h);

struct HeldoutOptions {
  std::uint64_t positions = 0;  // the first so many of a fixed random order; 0: all, game by game
  std::int64_t batch = 512;
  bool bf16 = false;
  torch::Device device = torch::kCPU;
};

// In eval mode and without gradients; leaves the mode as it was. `progress` is given positions done
// and to do.
Expected<Heldout> evaluate_heldout(
    nn::TorchNetwork& net, const Dataset& data, const HeldoutOptions& options,
    std::stop_token stop = {},
    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

// bf16 for what follows in this scope, as torch.autocast does in Python.
class Autocast {
 public:
  explicit Autocast(torch::Device device, bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  torch::Device device_;
  bool on_;
};

Expected<nn::PolicyHead> head_of(const nn::TorchNetwork& net);

}  // namespace tahl::learn
