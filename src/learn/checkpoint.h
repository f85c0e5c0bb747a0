#pragma once

#include <torch/optim/adamw.h>

#include "learn/trainer.h"

namespace tahl::learn {

std::filesystem::path checkpoint_path(const std::filesystem::path& run);  // RUN/checkpoint.pt

// A torch archive of weights, statistics, optimiser, mean weights, torch's random generator, the
// place in the data and the curves so far. Written beside `path`, then renamed.
Expected<void> write_checkpoint(const std::filesystem::path& path, const std::string& arch,
                                nn::TorchNetwork& net, const torch::optim::AdamW& optimizer,
                                const std::vector<torch::Tensor>& mean, const TrainState& state,
                                const RunLog& log);

// Refuses a checkpoint of another architecture. `mean` comes back empty if none was kept.
Expected<void> read_checkpoint(const std::filesystem::path& path, const std::string& arch,
                               nn::TorchNetwork& net, torch::optim::AdamW& optimizer,
                               std::vector<torch::Tensor>& mean, TrainState& state, RunLog& log);

}  // namespace tahl::learn
