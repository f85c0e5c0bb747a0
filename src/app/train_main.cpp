// tahl-train: fits networks to packed games. Apart from `tahl`, because LibTorch takes 0.6 s and
// 170 MB to load.

#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "app/interrupt.h"
#include "learn/trainer.h"

namespace {

using tahl::learn::TrainOptions;

int print_error(const std::string& message) {
  std::string line = message.substr(0, message.find('\n'));
  fmt::print(stderr, "tahl-train: {}\n", line);
  return 1;
}

// Lines for people, and one that is rewritten on a terminal; elsewhere every half minute.
class Console {
 public:
  void say(const std::string& line) {
    clear();
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
  void progress(const std::string& line) {
    const auto now = std::chrono::steady_clock::now();
    if (terminal_) {
      fmt::print(stderr, "\r{}\033[K", line);
      std::fflush(stderr);
    } else if (now >= next_) {
      say(line);
      next_ = now + std::chrono::seconds(30);
    }
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::chrono::steady_clock::time_point next_{};
};

int train(TrainOptions& options) {
  const tahl::app::Interrupt interrupt;
  auto trainer = tahl::learn::Trainer::create(options);
  if (!trainer) return print_error(trainer.error().message);
  Console console;
  const auto report = (*trainer)->train(
      interrupt.token(), [&](const std::string& line) { console.say(line); },
      [&](const std::string& line) { console.progress(line); });
  console.clear();
  if (!report) return print_error(report.error().message);
  if (report->stopped) {
    fmt::print("stopped and saved at step {}; the same command with --resume goes on\n",
               report->state.step);
  } else {
    fmt::print("{}: {} positions in {:.0f} s, {:.0f} positions/s\n", report->net.string(),
               report->state.positions, report->state.seconds, report->positions_per_second);
  }
  return 0;
}

struct EvaluateOptions {
  std::string net, data, split = "test", device = "cpu";
  std::uint64_t positions = 0;
  std::int64_t batch = 512;
  bool bf16 = false, json = false;
};

int evaluate(const EvaluateOptions& o) {
  const tahl::app::Interrupt interrupt;
  const auto split = tahl::learn::parse_split(o.split);
  if (!split) return print_error(split.error().message);
  const auto file = tahl::nn::read_net(o.net);
  if (!file) return print_error(file.error().message);
  if (file->encoding != "rdt19")
    return print_error(
        fmt::format("net: {}: its input is {}, the data's rdt19", o.net, file->encoding));
  const auto data = tahl::learn::Dataset::load(o.data, *split);
  if (!data) return print_error(data.error().message);
  const auto net = std::make_shared<tahl::nn::TorchNetwork>(file->arch);
  if (const auto ok = import_net(*file, *net); !ok) return print_error(ok.error().message);
  const torch::Device device(o.device == "cuda" ? torch::kCUDA : torch::kCPU);
  net->to(device);
  Console console;
  const auto h = tahl::learn::evaluate_heldout(
      *net, *data, {o.positions, o.batch, o.bf16, device}, interrupt.token(),
      [&](std::uint64_t done, std::uint64_t all) {
        if (!o.json) console.progress(fmt::format("{} of {} positions", done, all));
      });
  console.clear();
  if (!h) return print_error(h.error().message);
  if (o.json) {
    fmt::print("{}\n", to_json(*h));
  } else {
    fmt::print(
        "{} positions of {} {} games ({})\ntop-1 {:.2f} +- {:.2f} %   top-3 {:.2f} +- {:.2f} %   "
        "nll {:.4f} +- {:.4f}   value mse {:.4f} +- {:.4f}\n",
        h->positions, data->games(), o.split, data->name(), 100 * h->top1, 100 * h->top1_error,
        100 * h->top3, 100 * h->top3_error, h->nll, h->nll_error, h->value_mse, h->value_mse_error);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // Threads that wait in a spin take the core from whatever else runs: measured, a neighbour turns
  // 12 ms into 400.
  setenv("OMP_WAIT_POLICY", "passive", 0);
  // Set before libgomp reads its environment at load, so start again with it.
  if (!std::getenv("TAHL_TRAIN_STARTED")) {
    setenv("TAHL_TRAIN_STARTED", "1", 1);
    execv("/proc/self/exe", argv);
  }

  // Activations are some megabytes each: without this every step maps and unmaps them, a quarter of
  // its time.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 2000 << 20);

  CLI::App app{
      "Fits a network to packed games (tahl data pack). The defaults are RDTChess's recipe."};
  app.name("tahl-train");
  app.require_subcommand(0, 1);
  TrainOptions o;
  std::string family = "rdt", schedule = "constant", resume;
  app.add_option("--data", o.data, "folder of shards");
  app.add_option("--out", o.out, "folder of the run: checkpoint, log, curves, net");
  app.add_option("--arch", o.arch.family, "family of architectures")->capture_default_str();
  app.add_option("--channels", o.arch.channels, "width of the tower")->capture_default_str();
  app.add_option("--blocks", o.arch.blocks, "residual blocks")->capture_default_str();
  app.add_option("--recurrence", o.arch.recurrence, "passes through the tower")
      ->capture_default_str();
  app.add_flag("--se", o.arch.se, "squeeze-and-excitation");
  app.add_flag("--gate", o.arch.gate, "gated passes");
  app.add_option("--head", o.arch.policy_head, "planes12 or fromto4096")->capture_default_str();
  app.add_option("--lr", o.lr, "learning rate")->capture_default_str()->check(CLI::PositiveNumber);
  app.add_option("--schedule", schedule, "constant or cosine")
      ->capture_default_str()
      ->check(CLI::IsMember({"constant", "cosine"}));
  app.add_option("--lr-end", o.lr_end, "learning rate at the cosine's end")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--warmup", o.warmup, "steps over which the rate rises")->capture_default_str();
  app.add_option("--weight-decay", o.weight_decay)
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--batch", o.batch)->capture_default_str()->check(CLI::Range(1, 1 << 20));
  app.add_option("--clip", o.clip, "largest gradient norm; 0: none")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--value-weight", o.value_weight, "of the value's loss")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app.add_option("--ema", o.ema,
                 "decay of a running mean of the weights, which is then what comes out; 0: none")
      ->check(CLI::Range(0.0, 0.999999));
  app.add_option("--epochs", o.epochs, "passes over the data")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", o.steps, "batches, instead of epochs");
  app.add_option("--minutes", o.minutes, "stop after so long")->check(CLI::PositiveNumber);
  app.add_option("--seed", o.seed)->capture_default_str();
  CLI::Option* resuming =
      app.add_option("--resume", resume, "go on from the run's checkpoint, or from the one named")
          ->expected(0, 1);
  app.add_flag("--bf16", o.bf16, "bf16 autocast");
  app.add_option("--threads", o.threads, "of torch")->check(CLI::Range(0, 1024));
  app.add_option("--device", o.device, "cpu or cuda")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--val-every", o.val_every,
                 "steps between measurements on held-out games; 0: never")
      ->capture_default_str();
  app.add_option("--val-positions", o.val_positions, "how many of them; 0: all")
      ->capture_default_str();
  app.add_option("--log-every", o.log_every, "steps a line of the log")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--checkpoint-minutes", o.checkpoint_minutes)
      ->capture_default_str()
      ->check(CLI::PositiveNumber);

  CLI::App* evaluating =
      app.add_subcommand("evaluate", "how well a net guesses the moves of held-out games");
  EvaluateOptions e;
  evaluating->add_option("--net", e.net, ".safetensors or RDTChess .pt")->required();
  evaluating->add_option("--data", e.data, "folder of shards")->required();
  evaluating->add_option("--split", e.split, "train, val or test")->capture_default_str();
  evaluating->add_option("--max-positions", e.positions, "a random sample of so many; 0: all");
  evaluating->add_option("--batch", e.batch)->capture_default_str()->check(CLI::Range(1, 1 << 20));
  evaluating->add_option("--device", e.device)
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  evaluating->add_flag("--bf16", e.bf16, "bf16 autocast");
  evaluating->add_flag("--json", e.json);
  try {
    app.parse(argc, argv);
    if (evaluating->parsed()) return evaluate(e);
    if (o.data.empty() || o.out.empty())
      throw CLI::RequiredError(o.data.empty() ? "--data" : "--out");
    if (schedule == "cosine" && o.minutes > 0 && o.steps == 0 && app.count("--epochs") == 0)
      throw CLI::ValidationError(
          "--schedule cosine needs --steps or --epochs: a rate that followed the clock could not "
          "be resumed");
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    print_error(error.what());
    return 2;
  } catch (const std::exception& error) {
    return print_error(error.what());
  }
  o.schedule =
      schedule == "cosine" ? tahl::learn::Schedule::Cosine : tahl::learn::Schedule::Constant;
  o.resume = resuming->count() > 0;
  o.resume_from = resume;
  try {
    return train(o);
  } catch (const std::exception& error) {
    return print_error(error.what());
  }
}
