// tahl bench nn: how fast a net runs here, in every way that this processor can compute it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "app/commands.h"
#include "app/console.h"
#include "app/cpu_name.h"
#include "app/interrupt.h"
#include "nn/cpu_network.h"
#include "nn/encoding.h"
#include "nn/evaluator.h"
#include "nn/policy_map.h"

namespace tahl::app {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchCommand {
  std::string net;
  std::vector<int> batches{1, 8, 32, 128};
  std::vector<int> threads{1, 2};
  int rounds = 7;
  std::string only;
  bool json = false;
};

Expected<nn::NetFile> find_net(const std::string& name) {
  if (name == "rdt") return nn::fresh_net(nn::rdtchess_config());
  if (name == "rdt2") return nn::fresh_net(nn::rdtchess2_config());
  for (const nn::EmbeddedNet& net : nn::embedded_nets())
    if (name.empty() || name == net.name) return nn::read_net(net.bytes, std::string(net.name));
  if (name.empty()) return fail("bench: this program was built without a net; name one");
  return nn::read_net(std::filesystem::path(name));
}

// Positions of games of random moves, as the net reads them, and the outputs of their legal moves.
struct Inputs {
  std::vector<float> planes;
  std::vector<std::uint16_t> wanted;
  std::vector<std::uint32_t> begin{0};
};
Expected<Inputs> make_inputs(const nn::NetInfo& info, int n) {
  const nn::Encoding* encoding = nn::find_encoding(info.encoding);
  if (encoding == nullptr)
    return fail("bench: the net wants the encoding {}, which this program has not",
                tahl::quoted(info.encoding));
  const auto head = nn::parse_policy_head(info.arch.policy_head);
  if (!head) return tl::unexpected(head.error());
  std::mt19937 random(2);
  Inputs inputs;
  const auto size = static_cast<std::size_t>(info.input_planes) * 64;
  inputs.planes.resize(size * static_cast<std::size_t>(n));
  Game game;
  for (int i = 0; i < n; ++i) {
    MoveList legal = legal_moves(game.position());
    if (legal.empty() || game.ply() > 100) {
      game = Game();
      legal = legal_moves(game.position());
    }
    encoding->encode(game,
                     std::span(inputs.planes).subspan(static_cast<std::size_t>(i) * size, size));
    for (const Move m : legal) {
      const nn::PolicyTerms terms =
          nn::policy_terms(*head, game.position(), m, encoding->frame(game.position()));
      inputs.wanted.insert(inputs.wanted.end(), terms.output.begin(),
                           terms.output.begin() + terms.count);
    }
    inputs.begin.push_back(static_cast<std::uint32_t>(inputs.wanted.size()));
    game.play(legal[static_cast<int>(random() % static_cast<unsigned>(legal.size()))]);
  }
  return inputs;
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

// One way of computing, with one batch size.
struct Row {
  std::unique_ptr<nn::Network> network;
  nn::CpuConfig config;
  int batch = 0;
  Inputs inputs;
  std::vector<float> policy, value;
  std::vector<double> milliseconds;  // a position, one a round

  void pass() {
    network->forward(inputs.planes, batch, {inputs.wanted, inputs.begin}, policy, value);
  }
  void measure() {
    constexpr double kLeast = 60;  // milliseconds of a round
    int passes = 0;
    const auto begin = Clock::now();
    double passed = 0;
    while (passed < kLeast) {
      pass();
      ++passes;
      passed = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    }
    milliseconds.push_back(passed / (passes * batch));
  }
};

// 10^9 multiplications with additions a second and core, in registers alone.
double measure_peak(const nn::CpuKernels& kernels) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    const double macs = kernels.peak(3'000'000);
    const std::chrono::duration<double> passed = Clock::now() - begin;
    best = std::max(best, macs / passed.count() / 1e9);
  }
  return best;
}

int run(const BenchCommand& command) {
  auto net = find_net(command.net);
  if (!net) return print_error(net.error());
  std::vector<nn::CpuConfig> configs;
  for (const nn::CpuLevel level :
       {nn::CpuLevel::Baseline, nn::CpuLevel::Avx2, nn::CpuLevel::Avx512}) {
    for (const nn::Arithmetic arithmetic :
         {nn::Arithmetic::Fp32, nn::Arithmetic::Bf16, nn::Arithmetic::Int8}) {
      if (!nn::cpu_supports(level, arithmetic)) continue;
      for (const nn::ConvMethod method : {nn::ConvMethod::Direct, nn::ConvMethod::Winograd}) {
        if (arithmetic == nn::Arithmetic::Int8 && method == nn::ConvMethod::Winograd) continue;
        configs.push_back({level, arithmetic, method, 1});
      }
    }
  }
  const auto chosen = nn::choose_cpu_config(*net, {});
  if (!chosen) return print_error(chosen.error());

  std::vector<Row> rows;
  for (nn::CpuConfig config : configs) {
    for (const int threads : command.threads) {
      config.threads = threads;
      if (config.arithmetic == nn::Arithmetic::Int8 && !net->metadata.contains("int8_ranges")) {
        // For the clock alone any range will do.
        nn::Int8Ranges ranges;
        for (const nn::ParameterSpec& spec : nn::list_parameters(net->arch))
          if (spec.name.ends_with(".weight")) ranges[spec.name.substr(0, spec.name.size() - 7)] = 4;
        net->metadata["int8_ranges"] = nn::to_json(ranges);
      }
      for (const int batch : command.batches) {
        auto network = nn::make_cpu_network(*net, config);
        if (!network) return print_error(network.error());
        const nn::NetInfo& info = (*network)->info();
        if (info.arithmetic.find(command.only) == std::string::npos) continue;
        Row row;
        auto inputs = make_inputs(info, batch);
        if (!inputs) return print_error(inputs.error());
        row.inputs = std::move(*inputs);
        row.policy.resize(static_cast<std::size_t>(batch * info.policy_outputs));
        row.value.resize(static_cast<std::size_t>(batch * info.value_outputs));
        row.network = std::move(*network);
        row.config = config;
        row.batch = batch;
        rows.push_back(std::move(row));
      }
    }
  }
  if (rows.empty())
    return print_error(
        fmt::format("bench: no way of computing is called {}", tahl::quoted(command.only)));

  Interrupt interrupt;
  for (Row& row : rows) row.pass();
  for (int round = 0; round < command.rounds; ++round) {
    for (Row& row : rows) {
      if (interrupt.token().stop_requested()) return print_error("bench: interrupted");
      row.measure();
    }
  }

  const double macs = rows.front().network->info().macs;
  nlohmann::json out{{"cpu", cpu_name()}, {"macs", macs}, {"rounds", command.rounds}};
  if (!command.json)
    fmt::print(
        "{}; {:.1f} million multiplications with additions a position; medians of {} rounds in "
        "turns\n"
        "{:<44}{:>7}{:>13}{:>14}{:>10}\n",
        cpu_name(), macs / 1e6, command.rounds, "", "batch", "ms/position", "positions/s",
        "of peak");
  for (const Row& row : rows) {
    const double ms = median(row.milliseconds);
    const double peak = measure_peak(nn::cpu_kernels(row.config.level, row.config.arithmetic)) *
                        1e9 *
                        std::min<double>(row.config.threads, std::thread::hardware_concurrency());
    const double share = macs / (ms / 1000) / peak;
    const std::string& name = row.network->info().arithmetic;
    const bool is_chosen = row.config.arithmetic == chosen->arithmetic &&
                           row.config.method == chosen->method && row.config.level == chosen->level;
    if (command.json) {
      out["rows"].push_back({{"name", name},
                             {"batch", row.batch},
                             {"threads", row.config.threads},
                             {"milliseconds", ms},
                             {"of_peak", share},
                             {"chosen", is_chosen}});
      continue;
    }
    fmt::print("{:<44}{:>7}{:>13.4f}{:>14.0f}{:>9.0f}%\n", name + (is_chosen ? " *" : ""),
               row.batch, ms, 1000 / ms, 100 * share);
  }
  if (command.json)
    fmt::print("{}\n", out.dump());
  else
    fmt::print(
        "* what the program chooses. Of peak: of the products that the cores' registers allow; "
        "Winograd needs a quarter of them.\n");
  return 0;
}

}  // namespace

void add_bench_command(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "how fast this program is on this machine");
  bench->require_subcommand(1);
  CLI::App* command =
      bench->add_subcommand("nn", "a net's forward pass, in every way there is here");
  const auto options = std::make_shared<BenchCommand>();
  command
      ->add_option(
          "net", options->net,
          "net file, embedded net, or a shape: rdt, rdt2 (the embedded default if missing)")
      ->type_name("NET");
  command->add_option("--batch", options->batches, "positions a pass")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096).description(""))
      ->type_name("N,...");
  command->add_option("--threads", options->threads, "threads a pass")
      ->delimiter(',')
      ->check(CLI::Range(1, 256).description(""))
      ->type_name("N,...");
  command->add_option("--rounds", options->rounds, "rounds in turns")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  command->add_option("--only", options->only, "only ways whose name has this in it")
      ->type_name("TEXT");
  command->add_flag("--json", options->json, "one JSON object");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tahl::app
