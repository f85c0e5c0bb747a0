#include <chrono>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/game_argument.h"
#include "chess/movegen.h"
#include "chess/notation.h"

namespace tahl::app {
namespace {

struct PerftOptions {
  GameArgument position;
  int depth = 1;
  bool divide = false;
  bool json = false;
  std::string sliders = "default";
};

struct NamedBackend {
  const char* name;
  SliderBackend backend;
};
constexpr NamedBackend kBackends[] = {{"titboard", SliderBackend::Titboard},
                                      {"pext", SliderBackend::Pext},
                                      {"magic", SliderBackend::Magic}};

std::uint64_t count(const Position& position, int depth, const NamedBackend* backend) {
  return backend ? perft_with(backend->backend, position, depth) : perft(position, depth);
}

// The number of leaves, through one back end (the build's own if null). Human output goes to stdout
// as it comes.
std::uint64_t run_one(const PerftOptions& options, const Game& game, const NamedBackend* backend) {
  const Position& position = game.position();
  if (options.json) return count(position, options.depth, backend);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t nodes = 0;
  if (options.divide && options.depth > 0) {
    for (const Move move : legal_moves(position)) {
      Position next = position;
      next.make(move);
      const std::uint64_t below = count(next, options.depth - 1, backend);
      nodes += below;
      fmt::print("{}: {}\n", to_uci(position, move, game.is_chess960()), below);
    }
  } else {
    nodes = count(position, options.depth, backend);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  fmt::print("{:<8}{} nodes, {:.3f} s, {:.1f} million nodes/s\n", backend ? backend->name : "",
             nodes, seconds.count(),
             static_cast<double>(nodes) / std::max(seconds.count(), 1e-9) / 1e6);
  return nodes;
}

int run(const PerftOptions& options) {
  const Expected<Game> game = options.position.game();
  if (!game) return print_error(game.error());
  std::uint64_t nodes = 0;
  if (options.sliders == "default") {
    nodes = run_one(options, *game, nullptr);
  } else {
    bool first = true;
    for (const NamedBackend& backend : kBackends) {
      if (options.sliders != "all" && options.sliders != backend.name) continue;
      if (!is_available(backend.backend)) {
        if (options.sliders == "all") continue;
        return print_error(
            fmt::format("this build has no {} sliders (it does not target a CPU "
                        "with BMI2)",
                        backend.name));
      }
      const std::uint64_t found = run_one(options, *game, &backend);
      if (!first && found != nodes)
        return print_error(
            fmt::format("perft: {} sliders count {}, the others {}", backend.name, found, nodes));
      nodes = found;
      first = false;
    }
  }
  if (options.json) fmt::print("{}\n", nlohmann::json{{"nodes", nodes}}.dump());
  return 0;
}

}  // namespace

void add_perft_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("perft", "count the leaves of the tree of legal moves");
  const auto options = std::make_shared<PerftOptions>();
  options->position.add_to(*command);
  command->add_option("--depth", options->depth, "plies")
      ->required()
      ->check(CLI::Range(0, 100).description(""))
      ->type_name("N");
  command->add_flag("--chess960", options->position.chess960,
                    "castling in moves is king takes rook");
  command->add_flag("--divide", options->divide, "leaves below each move");
  command
      ->add_option("--sliders", options->sliders,
                   "back end: titboard, pext, magic, or all (must agree)")
      ->check(CLI::IsMember({"default", "titboard", "magic", "pext", "all"}).description(""))
      ->type_name("NAME");
  command->add_flag("--json", options->json, "{\"nodes\": N}");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tahl::app
