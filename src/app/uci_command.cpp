#include <iostream>
#include <random>

#include "app/commands.h"
#include "app/uci_session.h"

namespace tahl::app {

Expected<std::unique_ptr<search::Player>> make_uci_player(const UciOptions& options) {
  search::PlayerSpec spec;
  spec.text = spec.kind = options.player;
  const auto add = [&](std::string name, std::string value) {
    spec.options.emplace_back(std::move(name), std::move(value));
  };
  if (options.player != "minimax") {
    if (!options.net.empty()) add("net", options.net);
    add("temperature", fmt::format("{}", options.temperature / 100.0));
    add("precision", options.precision);
    add("threads", fmt::format("{}", options.threads));
  }
  if (options.player == "policy") {
    add("finish", fmt::format("{}", options.finish_plies));
  } else {
    const int cache = options.player == "mcts" ? options.hash / 8 : 0;
    add("hash", fmt::format("{}", options.hash - cache));
    if (options.player == "mcts") add("cache", fmt::format("{}", cache));
  }
  const std::uint64_t seed =
      options.seed > 0 ? static_cast<std::uint64_t>(options.seed) : std::random_device{}();
  return search::make_player(spec, seed);
}

void add_uci_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("uci", "speak UCI on stdin and stdout (as without a command)");
  command->callback([&exit_code] {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    run_uci(std::cin, std::cout);
    exit_code = 0;
  });
}

}  // namespace tahl::app
