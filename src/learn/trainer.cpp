#include "learn/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/serialize.h>

#include <chrono>
#include <cmath>
#include <numbers>

#include "learn/checkpoint.h"
#include "learn/losses.h"
#include "nn/net_file.h"

namespace tahl::learn {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string duration(double seconds) {
  const auto s = static_cast<long>(seconds);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// oneDNN's kernels want channels last, and so do the gradients.
void make_channels_last(nn::TorchNetwork& net) {
  const torch::NoGradGuard no_gradients;
  for (torch::Tensor& p : net.parameters())
    if (p.dim() == 4) p.set_data(p.contiguous(at::MemoryFormat::ChannelsLast));
}

}  // namespace

Expected<std::unique_ptr<Trainer>> Trainer::create(const TrainOptions& options) {
  std::unique_ptr<Trainer> trainer(new Trainer(options));
  try {
    if (auto ok = trainer->set_up(); !ok) return tl::unexpected(ok.error());
  } catch (const c10::Error& error) {
    return fail("train: {}", error.what_without_backtrace());
  }
  return trainer;
}

Expected<void> Trainer::set_up() {
  const TrainOptions& o = options_;
  if (o.threads > 0) at::set_num_threads(o.threads);
  if (o.device == "cuda") {
    if (!torch::cuda::is_available()) return fail("train: this LibTorch has no CUDA device");
    device_ = torch::kCUDA;
  } else if (o.device != "cpu") {
    return fail("train: device \"{}\" is neither cpu nor cuda", tahl::quoted(o.device));
  }
  if (auto ok = nn::validate(o.arch); !ok) return ok;
  auto data = Dataset::load(o.data, Split::Train);
  if (!data) return tl::unexpected(data.error());
  data_ = std::move(*data);
  if (data_.positions() < static_cast<std::uint64_t>(o.batch))
    return fail("train: {} has {} positions, and a batch is {}", o.data.string(), data_.positions(),
                o.batch);
  if (auto val = Dataset::load(o.data, Split::Val)) val_ = std::move(*val);

  torch::manual_seed(o.seed);
  net_ = std::make_shared<nn::TorchNetwork>(o.arch);
  const auto head = head_of(*net_);
  if (!head) return tl::unexpected(head.error());
  head_ = *head;
  net_->to(device_);
  make_channels_last(*net_);
  optimizer_ = std::make_unique<torch::optim::AdamW>(
      net_->parameters(),
      torch::optim::AdamWOptions(o.lr).betas({o.beta1, o.beta2}).weight_decay(o.weight_decay));
  if (o.ema > 0)
    for (const torch::Tensor& t : floats()) mean_.push_back(t.detach().clone());
  state_.seed = o.seed;
  state_.data_hash = data_.hash();

  std::error_code error;
  fs::create_directories(o.out, error);
  if (!fs::is_directory(o.out)) return fail("train: cannot make the folder {}", o.out.string());
  const fs::path own = checkpoint_path(o.out);
  if (o.resume) return load_checkpoint(o.resume_from.empty() ? own : o.resume_from);
  if (fs::exists(own))
    return fail("train: {} has a checkpoint; add --resume to go on, or choose another folder",
                o.out.string());
  return {};
}

std::vector<torch::Tensor> Trainer::floats() const {
  std::vector<torch::Tensor> all = net_->parameters();
  for (const torch::Tensor& b : net_->buffers())
    if (b.is_floating_point()) all.push_back(b);
  return all;
}

void Trainer::update_mean() {
  const torch::NoGradGuard no_gradients;
  // The first steps weigh more, or the mean would remember the random start: as in TensorFlow's,
  // min(decay, (1+n)/(10+n)).
  const auto n = static_cast<double>(state_.step);
  const double keep = std::min(options_.ema, (1 + n) / (10 + n));
  const auto now = floats();
  for (std::size_t i = 0; i < now.size(); ++i) mean_[i].lerp_(now[i].detach(), 1 - keep);
}

void Trainer::swap_mean() {
  if (mean_.empty()) return;
  const torch::NoGradGuard no_gradients;
  const auto now = floats();
  for (std::size_t i = 0; i < now.size(); ++i) {
    const torch::Tensor kept = now[i].detach().clone();
    now[i].detach().copy_(mean_[i]);
    mean_[i].copy_(kept);
  }
}

std::uint64_t Trainer::last_step() const {
  if (options_.steps > 0) return options_.steps;
  return static_cast<std::uint64_t>(options_.epochs * static_cast<double>(data_.positions()) /
                                    static_cast<double>(options_.batch));
}

double Trainer::learning_rate() const {
  const TrainOptions& o = options_;
  if (state_.slice_step < o.warmup)
    return o.lr * static_cast<double>(state_.slice_step + 1) / static_cast<double>(o.warmup);
  if (o.schedule == Schedule::Constant) return o.lr;
  const double at = static_cast<double>(state_.slice_step - o.warmup) /
                    std::max(1.0, static_cast<double>(last_step()) - static_cast<double>(o.warmup));
  return o.lr_end + (o.lr - o.lr_end) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, at)));
}

Expected<void> Trainer::load_checkpoint(const fs::path& path) {
  if (auto ok = read_checkpoint(path, nn::to_json(options_.arch), *net_, *optimizer_, mean_, state_,
                                log_);
      !ok)
    return ok;
  make_channels_last(*net_);
  if (options_.ema > 0 && mean_.empty())
    for (const torch::Tensor& t : floats()) mean_.push_back(t.detach().clone());
  if (state_.data_hash != data_.hash() || state_.seed != options_.seed) {
    if (options_.resume_from.empty())
      return fail(
          "train: {} was made with other data or another seed; name it with --resume to carry its "
          "weights to these",
          path.string());
    state_.slice_step = state_.slice_samples = 0;
    state_.data_hash = data_.hash();
    state_.seed = options_.seed;
  }
  return {};
}

Expected<void> Trainer::save_checkpoint() {
  return write_checkpoint(checkpoint_path(options_.out), nn::to_json(options_.arch), *net_,
                          *optimizer_, mean_, state_, log_);
}

Expected<Heldout> Trainer::validate(std::stop_token stop) {
  swap_mean();
  auto heldout = evaluate_heldout(
      *net_, *val_, {options_.val_positions, options_.batch, options_.bf16, device_}, stop);
  swap_mean();
  return heldout;
}

Expected<void> Trainer::export_to(const fs::path& path, const std::optional<Heldout>& heldout) {
  const TrainOptions& o = options_;
  std::map<std::string, std::string> about;
  about["recipe"] = fmt::format(
      "AdamW lr {} {}, betas {} {}, weight decay {}, batch {}, clip {}, cross-entropy over legal "
      "moves + {} * squared error of the result{}{}",
      o.lr,
      o.schedule == Schedule::Cosine
          ? fmt::format("cosine to {} over {} steps", o.lr_end, last_step())
          : std::string("constant"),
      o.beta1, o.beta2, o.weight_decay, o.batch, o.clip, o.value_weight,
      o.ema > 0 ? fmt::format(", mean of weights {}", o.ema) : std::string(),
      o.bf16 ? ", bf16 autocast" : "");
  about["data"] = fmt::format("{}: {} games, {} positions, {:016x}", data_.name(), data_.games(),
                              data_.positions(), data_.hash());
  about["positions_seen"] = std::to_string(state_.positions);
  about["steps"] = std::to_string(state_.step);
  about["seconds"] = fmt::format("{:.0f}", state_.seconds);
  about["seed"] = std::to_string(o.seed);
  if (heldout) about["heldout"] = to_json(*heldout);
  swap_mean();
  const auto file = nn::export_net(*net_, "rdt19", std::move(about));
  swap_mean();
  return nn::write_net(file, path);
}

Expected<TrainReport> Trainer::train(std::stop_token stop,
                                     const std::function<void(const std::string&)>& say,
                                     const std::function<void(const std::string&)>& progress) try {
  const TrainOptions& o = options_;
  const std::uint64_t last = last_step();
  TrainReport report;
  say(fmt::format("{} parameters, {} games, {} positions, {} steps of {}",
                  nn::parameter_count(o.arch), data_.games(), data_.positions(), last, o.batch));
  if (state_.step > 0)
    say(fmt::format("going on from step {} ({} of {} on these data)", state_.step,
                    state_.slice_step, last));
  if (!val_) say("no validation games in the data: nothing held out to measure");
  if (auto ok = RunLog::append(
          o.out,
          fmt::format(
              R"({{"event":"start","step":{},"parameters":{},"arch":{},"seed":{},"games":{},"positions":{},"steps":{},"batch":{}}})",
              state_.step, nn::parameter_count(o.arch), nn::to_json(o.arch), o.seed, data_.games(),
              data_.positions(), last, o.batch));
      !ok)
    return tl::unexpected(ok.error());

  Loader loader(data_, {head_, o.batch, o.seed, 2}, state_.slice_samples);
  net_->train();
  const auto began = Clock::now();
  auto last_checkpoint = began, last_line = began, interval = began;
  double paused = 0;  // seconds of this call that were not training
  double interval_paused = 0;
  const double seconds_before = state_.seconds;
  const std::uint64_t positions_before = state_.positions;
  TrainPoint sum;
  std::uint64_t in_sum = 0;

  const auto measure = [&]() -> Expected<void> {
    if (!val_) return {};
    const auto start = Clock::now();
    auto heldout = validate(stop);
    paused += seconds_since(start);
    interval_paused += seconds_since(start);
    if (!heldout) return stop.stop_requested() ? Expected<void>{} : tl::unexpected(heldout.error());
    report.heldout = *heldout;
    const ValPoint p{static_cast<double>(state_.step),
                     static_cast<double>(state_.positions),
                     heldout->top1,
                     heldout->top3,
                     heldout->nll,
                     heldout->value_mse};
    log_.val.push_back(p);
    say(fmt::format(
        "step {}: held out top-1 {:.2f} %, top-3 {:.2f} %, nll {:.4f}, value mse {:.4f}",
        state_.step, 100 * p.top1, 100 * p.top3, p.nll, p.value_mse));
    if (auto ok = RunLog::append(o.out, to_json(p)); !ok) return ok;
    return log_.draw(o.out);
  };

  while (state_.slice_step < last) {
    if (stop.stop_requested() || (o.minutes > 0 && seconds_since(began) > 60 * o.minutes)) {
      report.stopped = stop.stop_requested();
      break;
    }
    auto loaded = loader.next();
    if (!loaded) return tl::unexpected(loaded.error());
    const Batch batch = to_device(*loaded, device_);
    const double lr = learning_rate();
    for (auto& group : optimizer_->param_groups())
      static_cast<torch::optim::AdamWOptions&>(group.options()).lr(lr);

    torch::Tensor outputs, values;
    {
      const Autocast autocast(device_, o.bf16);
      std::tie(outputs, values) =
          net_->forward(batch.planes.contiguous(at::MemoryFormat::ChannelsLast));
    }
    const Losses l = losses(outputs, values, batch, o.value_weight);
    // None rather than zero: the first gradient is then stored and not added.
    for (const torch::Tensor& parameter : net_->parameters()) parameter.mutable_grad().reset();
    l.total.backward();
    if (o.clip > 0) torch::nn::utils::clip_grad_norm_(net_->parameters(), o.clip);
    optimizer_->step();

    ++state_.step;
    ++state_.slice_step;
    state_.positions += static_cast<std::uint64_t>(batch.size());
    state_.slice_samples = loader.taken();
    if (!mean_.empty()) update_mean();

    const double loss = l.total.item<double>();
    if (!std::isfinite(loss))
      return fail("train: the loss is {} at step {}; the last checkpoint is kept", loss,
                  state_.step);
    sum.loss += loss;
    sum.policy += l.policy.item<double>();
    sum.value += l.value.item<double>();
    sum.top1 += static_cast<double>(hits(l.logits.detach(), batch.target, 1)) /
                static_cast<double>(batch.size());
    ++in_sum;
    state_.seconds = seconds_before + seconds_since(began) - paused;
    report.positions_per_second = static_cast<double>(state_.positions - positions_before) /
                                  std::max(1e-9, state_.seconds - seconds_before);

    if (in_sum == o.log_every || state_.slice_step == last) {
      const auto n = static_cast<double>(in_sum);
      const double rate = n * static_cast<double>(o.batch) /
                          std::max(1e-9, seconds_since(interval) - interval_paused);
      const TrainPoint p{static_cast<double>(state_.step),
                         static_cast<double>(state_.positions),
                         sum.loss / n,
                         sum.policy / n,
                         sum.value / n,
                         sum.top1 / n,
                         lr,
                         rate};
      log_.train.push_back(p);
      if (auto ok = RunLog::append(o.out, to_json(p)); !ok) return tl::unexpected(ok.error());
      sum = {};
      in_sum = 0;
      interval = Clock::now();
      interval_paused = 0;
    }
    if (seconds_since(last_line) > 1 || state_.slice_step == last) {
      last_line = Clock::now();
      double left =
          static_cast<double>((last - state_.slice_step) * static_cast<std::uint64_t>(o.batch)) /
          std::max(1.0, report.positions_per_second);
      if (o.minutes > 0) left = std::min(left, 60 * o.minutes - seconds_since(began));
      const TrainPoint shown = log_.train.empty() ? TrainPoint{} : log_.train.back();
      progress(
          fmt::format("step {}/{}  {:.2f} M positions  loss {:.3f}  policy {:.3f}  value {:.3f}  "
                      "top-1 {:.1f} %  {:.0f}/s  {} left",
                      state_.slice_step, last, static_cast<double>(state_.positions) / 1e6,
                      shown.loss, shown.policy, shown.value, 100 * shown.top1,
                      report.positions_per_second, duration(std::max(0.0, left))));
    }
    if (o.val_every > 0 && state_.slice_step % o.val_every == 0 && state_.slice_step < last)
      if (auto ok = measure(); !ok) return tl::unexpected(ok.error());
    if (seconds_since(last_checkpoint) > 60 * o.checkpoint_minutes) {
      const auto start = Clock::now();
      if (auto ok = save_checkpoint(); !ok) return tl::unexpected(ok.error());
      last_checkpoint = Clock::now();
      paused += seconds_since(start);
      interval_paused += seconds_since(start);
    }
  }

  if (!report.stopped && o.val_every > 0)
    if (auto ok = measure(); !ok) return tl::unexpected(ok.error());
  if (auto ok = save_checkpoint(); !ok) return tl::unexpected(ok.error());
  if (!report.stopped) {
    report.net = o.out / "net.safetensors";
    if (auto ok = export_to(report.net, report.heldout); !ok) return tl::unexpected(ok.error());
    if (auto ok = log_.draw(o.out); !ok) return tl::unexpected(ok.error());
  }
  report.state = state_;
  return report;
} catch (const c10::Error& error) {
  return fail("train: {}", error.what_without_backtrace());
}

}  // namespace tahl::learn
