#pragma once

#include <torch/optim/adamw.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "learn/dataset.h"
#include "learn/heldout.h"
#include "learn/run_log.h"
#include "nn/torch_network.h"

namespace tahl::learn {

enum class Schedule : std::uint8_t { Constant, Cosine };

// The defaults are RDTChess's recipe.
struct TrainOptions {
  std::filesystem::path data;  // folder of shards
  std::filesystem::path out;   // folder of the run
  nn::ArchConfig arch;

  double lr = 1e-3;
  double lr_end = 1e-4;      // of the cosine, at the last step
  std::uint64_t warmup = 0;  // steps over which the rate rises from zero
  Schedule schedule = Schedule::Constant;
  double weight_decay = 1e-4;
  double beta1 = 0.9, beta2 = 0.999;
  std::int64_t batch = 512;
  double clip = 1.0;          // largest gradient norm; 0: no clipping
  double value_weight = 1.0;  // of the value's squared error beside the policy's cross-entropy
  double ema = 0;             // > 0: the net that comes out is this exponential mean of the weights

  double epochs = 1;        // over `data`
  std::uint64_t steps = 0;  // instead of epochs
  double minutes = 0;       // stop after so long, if before the last step; this run's clock
  std::uint64_t seed = 1;

  bool resume = false;  // from `out`'s own checkpoint, or `resume_from`
  std::filesystem::path
      resume_from;  // with other data: weights and optimiser go on, the data begins

  bool bf16 = false;
  int threads = 0;  // of torch; 0: its own choice
  std::string device = "cpu";
  std::uint64_t val_every = 1000;  // steps; 0: only at the end
  std::uint64_t val_positions = 8192;
  std::uint64_t log_every = 50;  // steps
  double checkpoint_minutes = 5;
};

// Everything needed to go on. Saved whole under one name by writing beside it and renaming.
struct TrainState {
  std::uint64_t step = 0;        // since the beginning, all slices
  std::uint64_t positions = 0;   // likewise
  std::uint64_t slice_step = 0;  // on this data
  std::uint64_t slice_samples = 0;
  std::uint64_t data_hash = 0, seed = 0;
  double seconds = 0;  // spent training
};

struct TrainReport {
  TrainState state;
  bool stopped = false;             // before its last step: `--resume` goes on
  double positions_per_second = 0;  // of this call, evaluation left out
  std::optional<Heldout> heldout;
  std::filesystem::path net;
};

// A network being trained: train() runs it to its end or until `stop`.
class Trainer {
 public:
  static Expected<std::unique_ptr<Trainer>> create(const TrainOptions& options);

  // Loss over batches, clip, AdamW; checkpoints, log, curves, and at the end OUT/net.safetensors.
  // `say` gets lines for people, and `progress` a line to show until the next.
  Expected<TrainReport> train(std::stop_token stop,
                              const std::function<void(const std::string&)>& say,
                              const std::function<void(const std::string&)>& progress);

  nn::TorchNetwork& net() { return *net_; }
  const TrainState& state() const { return state_; }

 private:
  explicit Trainer(const TrainOptions& options) : options_(options), device_(torch::kCPU) {}
  Expected<void> set_up();
  Expected<void> load_checkpoint(const std::filesystem::path& path);
  Expected<void> save_checkpoint();
  Expected<Heldout> validate(std::stop_token stop);
  Expected<void> export_to(const std::filesystem::path& path,
                           const std::optional<Heldout>& heldout);
  double learning_rate() const;     // at slice_step
  std::uint64_t last_step() const;  // of this slice
  void update_mean();
  void swap_mean();                           // weights <-> their mean
  std::vector<torch::Tensor> floats() const;  // parameters and statistics

  TrainOptions options_;
  torch::Device device_;
  Dataset data_;
  std::optional<Dataset> val_;
  std::shared_ptr<nn::TorchNetwork> net_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  nn::PolicyHead head_ = nn::PolicyHead::Planes12;
  std::vector<torch::Tensor> mean_;
  TrainState state_;
  RunLog log_;
};

}  // namespace tahl::learn
