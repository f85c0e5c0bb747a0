#include "learn/heldout.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

#include <cmath>

#include "learn/losses.h"

namespace tahl::learn {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
void set_autocast(torch::Device device, bool on) {
  at::autocast::set_autocast_dtype(device.type(), at::kBFloat16);
  at::autocast::set_autocast_enabled(device.type(), on);
}
#else
void set_autocast(torch::Device device, bool on) {
  if (device.is_cuda()) {
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
    at::autocast::set_enabled(on);
  } else {
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
    at::autocast::set_cpu_enabled(on);
  }
}
#endif

double standard_error(double sum, double squares, double n) {
  return n > 1 ? std::sqrt(std::max(0.0, squares / n - (sum / n) * (sum / n)) / n) : 0;
}

}  // namespace

Autocast::Autocast(torch::Device device, bool on) : device_(device), on_(on) {
  if (on_) set_autocast(device_, true);
}

Autocast::~Autocast() {
  if (!on_) return;
  at::autocast::clear_cache();  // bf16 copies of the weights, which the optimiser is about to
                                // change
  set_autocast(device_, false);
}

std::string to_json(const Heldout& h) {
  return fmt::format(
      R"({{"positions":{},"top1":{:.5f},"top1_error":{:.5f},"top3":{:.5f},"top3_error":{:.5f},"nll":{:.5f},"nll_error":{:.5f},"value_mse":{:.5f},"value_mse_error":{:.5f}}})",
      h.positions, h.top1, h.top1_error, h.top3, h.top3_error, h.nll, h.nll_error, h.value_mse,
      h.value_mse_error);
}

Expected<nn::PolicyHead> head_of(const nn::TorchNetwork& net) {
  return nn::parse_policy_head(net.config().policy_head);
}

Expected<Heldout> evaluate_heldout(
    nn::TorchNetwork& net, const Dataset& data, const HeldoutOptions& options, std::stop_token stop,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const auto head = head_of(net);
  if (!head) return tl::unexpected(head.error());
  const torch::NoGradGuard no_gradients;
  const bool training = net.is_training();
  net.eval();

  const bool all = options.positions == 0 || options.positions >= data.positions();
  const std::uint64_t total = all ? data.positions() : options.positions;
  const Permutation order(data.positions(), 0);
  const auto batch_size = static_cast<std::size_t>(options.batch);
  std::vector<Sample> waiting;
  std::uint64_t next = 0;  // game, or place in the random order
  const auto fill = [&]() -> std::optional<Error> {
    while (waiting.size() < batch_size) {
      if (all) {
        if (next == data.games()) break;
        auto some = data.game_samples(next++, *head);
        if (!some) return some.error();
        std::move(some->begin(), some->end(), std::back_inserter(waiting));
      } else {
        if (next == total) break;
        auto one = data.sample(order(next++), *head);
        if (!one) return one.error();
        waiting.push_back(std::move(*one));
      }
    }
    return std::nullopt;
  };

  Heldout h;
  double top1 = 0, top3 = 0, nll = 0, nll2 = 0, mse = 0, mse2 = 0;
  while (!stop.stop_requested()) {
    if (auto problem = fill()) {
      net.train(training);
      return tl::unexpected(*problem);
    }
    if (waiting.empty()) break;
    const std::size_t count = std::min(waiting.size(), batch_size);
    const Batch batch = to_device(make_batch({waiting.data(), count}, *head), options.device);
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(count));
    torch::Tensor outputs, values;
    {
      const Autocast autocast(options.device, options.bf16);
      std::tie(outputs, values) =
          net.forward(batch.planes.contiguous(at::MemoryFormat::ChannelsLast));
    }
    const auto logits = move_logits(outputs, batch);
    top1 += static_cast<double>(hits(logits, batch.target, 1));
    top3 += static_cast<double>(hits(logits, batch.target, 3));
    const auto surprise =
        -torch::log_softmax(logits, 1).gather(1, batch.target.unsqueeze(1)).to(torch::kDouble);
    const auto error = (values.to(torch::kDouble) - batch.value.to(torch::kDouble)).square();
    nll += surprise.sum().item<double>();
    nll2 += surprise.square().sum().item<double>();
    mse += error.sum().item<double>();
    mse2 += error.square().sum().item<double>();
    h.positions += count;
    if (progress) progress(h.positions, total);
  }
  net.train(training);
  if (h.positions == 0) return fail("heldout: stopped before the first batch");
  const auto n = static_cast<double>(h.positions);
  h.top1 = top1 / n;
  h.top3 = top3 / n;
  h.nll = nll / n;
  h.value_mse = mse / n;
  h.top1_error = standard_error(top1, top1, n);
  h.top3_error = standard_error(top3, top3, n);
  h.nll_error = standard_error(nll, nll2, n);
  h.value_mse_error = standard_error(mse, mse2, n);
  return h;
}

}  // namespace tahl::learn
