#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/commands.h"
#include "app/console.h"
#include "app/cpu_name.h"
#include "app/game_argument.h"
#include "app/interrupt.h"
#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "chess/perft.h"

namespace tahl::app {
namespace {

using Clock = std::chrono::steady_clock;

struct PerftCommand {
  GameArgument position;
  int depth = -1;
  bool divide = false;
  bool json = false;
  bool compare = false;
  int rounds = 7;
  int threads = 1;
  int hash_mb = 0;
  std::string sliders = "default";
  std::string leaves = "counted";

  Leaves leaves_kind() const { return leaves == "made" ? Leaves::Made : Leaves::Counted; }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How far a long count is, as one line on a terminal's stderr.
class ProgressLine {
 public:
  ~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void show(const PerftProgress& p) {
    const double spent = seconds_since(start_);
    if (!terminal_ || spent < 2 || p.done == 0) return;
    shown_ = true;
    const double share = static_cast<double>(p.done) / static_cast<double>(p.all);
    fmt::print(stderr, "\r\033[K{:.1f} %, {} nodes, about {:.0f} s left", 100 * share, p.nodes,
               spent / share - spent);
    std::fflush(stderr);
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1, shown_ = false;
  Clock::time_point start_ = Clock::now();
};

// Counts through one back end (the fastest way if none).
Expected<std::uint64_t> run_one(const PerftCommand& command, const Game& game,
                                std::optional<SliderBackend> sliders, const std::stop_token& stop) {
  const PerftOptions options{command.leaves_kind(), sliders, command.threads, command.hash_mb};
  const auto start = Clock::now();
  PerftResult result;
  try {
    ProgressLine line;
    result = perft_tree(game.position(), command.depth, options, stop,
                        [&](const PerftProgress& p) { line.show(p); });
  } catch (const std::bad_alloc&) {
    return fail("perft: no memory for --hash {}", command.hash_mb);
  }
  const double seconds = seconds_since(start);
  if (result.overflow) return fail("perft: more than 2^64 leaves");
  if (!result.complete) return fail("perft: interrupted");
  if (command.json) return result.nodes;
  if (command.divide)
    for (const auto& [move, nodes] : result.below)
      fmt::print("{}: {}\n", to_uci(game.position(), move, game.is_chess960()), nodes);
  fmt::print("{:<10}{} nodes, {:.4f} s, {:.1f} million nodes/s\n",
             sliders ? to_string(*sliders) : "", result.nodes, seconds,
             static_cast<double>(result.nodes) / std::max(seconds, 1e-9) / 1e6);
  std::fflush(stdout);
  return result.nodes;
}

int count_one_position(const PerftCommand& command) {
  const Expected<Game> game = command.position.game();
  if (!game) return print_error(game.error());
  std::vector<std::optional<SliderBackend>> backends;
  if (command.sliders == "default") backends.emplace_back();
  for (const SliderBackend b : kSliderBackends) {
    if (command.sliders != "all" && command.sliders != to_string(b)) continue;
    if (is_available(b)) {
      backends.emplace_back(b);
    } else if (command.sliders != "all") {
      return print_error(
          fmt::format("perft: no {} on this processor: it lacks a fast PEXT", to_string(b)));
    }
  }
  const std::int64_t memory_mb =
      (sysconf(_SC_PHYS_PAGES) * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE))) >> 20;
  if (command.hash_mb > memory_mb)
    return print_error(fmt::format("perft: --hash {} is more than the {} MB of this machine",
                                   command.hash_mb, memory_mb));
  const Interrupt interrupt;
  std::optional<std::uint64_t> agreed;
  for (const auto& backend : backends) {
    const auto nodes = run_one(command, *game, backend, interrupt.token());
    if (!nodes) return print_error(nodes.error());
    if (agreed && *agreed != *nodes)
      return print_error(
          fmt::format("perft: {} counts {}, the others {}", to_string(*backend), *nodes, *agreed));
    agreed = *nodes;
  }
  if (command.json) fmt::print("{}\n", nlohmann::json{{"nodes", *agreed}}.dump());
  return 0;
}

// The six positions of the Chess Programming Wiki's perft results, with a depth for each kind of
// leaves that takes about as long in all of them.
struct Standard {
  const char* name;
  const char* fen;
  int counted_depth, made_depth;
};
constexpr Standard kSix[] = {
    {"initial", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 6, 5},
    {"Kiwipete", "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1", 5, 4},
    {"position 3", "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 7, 6},
    {"position 4", "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1", 5, 5},
    {"position 5", "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", 5, 4},
    {"position 6", "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10", 5,
     4}};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += std::log(x);
  return std::exp(sum / static_cast<double>(values.size()));
}

// The rounds done, as one line on a terminal's stderr.
class RoundsLine {
 public:
  explicit RoundsLine(int rounds) : rounds_(rounds) {}
  ~RoundsLine() { clear(); }
  void show(int done) {
    if (!terminal_) return;
    shown_ = true;
    fmt::print(stderr, "\r\033[Kround {} of {}, about {:.0f} s left", done, rounds_,
               seconds_since(start_) / done * (rounds_ - done));
    std::fflush(stderr);
  }
  void clear() {
    if (std::exchange(shown_, false)) fmt::print(stderr, "\r\033[K");
  }

 private:
  int rounds_;
  bool terminal_ = isatty(STDERR_FILENO) == 1, shown_ = false;
  Clock::time_point start_ = Clock::now();
};

// Every back end on the six positions in turns, and the medians of their speeds.
int compare(const PerftCommand& command) {
  struct Row {
    std::string name;
    std::optional<SliderBackend> sliders;
    std::vector<double> speed[std::size(kSix)];  // million nodes/s, one a round
    std::vector<double> mean;                    // of the six, geometric, one a round
  };
  std::vector<Row> rows;
  for (const SliderBackend b : kSliderBackends)
    if (is_available(b)) rows.push_back({std::string(to_string(b)), b, {}, {}});
  const Leaves leaves = command.leaves_kind();
  if (leaves == Leaves::Counted) rows.push_back({"default", std::nullopt, {}, {}});

  const Interrupt interrupt;
  RoundsLine line(command.rounds);
  for (int round = 0; round < command.rounds; ++round) {
    for (std::size_t i = 0; i < std::size(kSix); ++i) {
      const Position position = parse_fen(kSix[i].fen).value();
      const int depth = leaves == Leaves::Made ? kSix[i].made_depth : kSix[i].counted_depth;
      std::optional<std::uint64_t> agreed;
      for (std::size_t k = 0; k < rows.size(); ++k) {
        // The order turns with the rounds, so that no back end always comes first.
        Row& row = rows[(k + static_cast<std::size_t>(round)) % rows.size()];
        if (interrupt.token().stop_requested()) {
          line.clear();
          return print_error("perft: interrupted");
        }
        const auto begin = Clock::now();
        const std::uint64_t nodes = row.sliders ? perft_with(*row.sliders, position, depth, leaves)
                                                : perft(position, depth, leaves);
        row.speed[i].push_back(static_cast<double>(nodes) / seconds_since(begin) / 1e6);
        if (agreed && *agreed != nodes) {
          line.clear();
          return print_error(
              fmt::format("perft: {} counts {}, the others {}", row.name, nodes, *agreed));
        }
        agreed = nodes;
      }
    }
    for (Row& row : rows) {
      std::vector<double> six;
      for (const auto& speeds : row.speed) six.push_back(speeds.back());
      row.mean.push_back(geometric_mean(six));
    }
    line.show(round + 1);
  }
  line.clear();

  const Row* pext = nullptr;
  for (const Row& row : rows)
    if (row.sliders == SliderBackend::Pext) pext = &row;
  const Row& base = pext ? *pext : rows.front();
  nlohmann::json out{{"cpu", cpu_name()},
                     {"instructions", movegen_instruction_set()},
                     {"leaves", command.leaves},
                     {"rounds", command.rounds}};
  if (!command.json) {
    fmt::print(
        "{}, {} code, one thread, leaves {}: million nodes/s, medians of {} rounds in turns\n",
        cpu_name(), movegen_instruction_set(), command.leaves, command.rounds);
    fmt::print("{:<10}", "");
    for (const Standard& s : kSix) fmt::print("{:>11}", s.name);
    fmt::print("{:>9}{:>9}  {}\n", "mean", fmt::format("/ {}", base.name), "its rounds");
  }
  for (const Row& row : rows) {
    std::vector<double> six, ratios;
    for (const auto& speeds : row.speed) six.push_back(median(speeds));
    for (std::size_t i = 0; i < row.mean.size(); ++i) ratios.push_back(row.mean[i] / base.mean[i]);
    const double mean = geometric_mean(six), ratio = median(ratios);
    const auto [low, high] = std::ranges::minmax(ratios);
    if (command.json) {
      out["sliders"][row.name] = {{"mnps", six},
                                  {"mean", mean},
                                  {"ratio", ratio},
                                  {"ratio_low", low},
                                  {"ratio_high", high}};
      continue;
    }
    fmt::print("{:<10}", row.name);
    for (const double x : six) fmt::print("{:>11.1f}", x);
    fmt::print("{:>9.1f}{:>9.3f}  {:.3f} to {:.3f}\n", mean, ratio, low, high);
  }
  if (command.json) {
    fmt::print("{}\n", out.dump());
  } else {
    fmt::print("The mean is geometric; / {} is the median over the rounds of the ratio of means.\n",
               base.name);
    if (leaves == Leaves::Counted)
      fmt::print("default counts all sliders at once where there are many (docs/titboards.md).\n");
  }
  return 0;
}

int run(const PerftCommand& command) {
  return command.compare ? compare(command) : count_one_position(command);
}

}  // namespace

void add_perft_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("perft", "count the leaves of the tree of legal moves");
  const auto options = std::make_shared<PerftCommand>();
  options->position.add_to(*command);
  const auto number = [&](const char* name, int& target, int low, int high, const char* help) {
    return command->add_option(name, target, help)
        ->check(CLI::Range(low, high).description(""))
        ->type_name("N");
  };
  CLI::Option* depth = number("--depth", options->depth, 0, 100, "plies");
  CLI::Option* chess960 = command->add_flag("--chess960", options->position.chess960,
                                            "castling in moves is king takes rook");
  CLI::Option* divide = command->add_flag("--divide", options->divide, "leaves below each move");
  CLI::Option* sliders = command->add_option(
      "--sliders", options->sliders,
      "back end: titboard, pext, magic, all (must agree), or default, the fastest way there is");
  sliders->check(CLI::IsMember({"default", "titboard", "pext", "magic", "all"}).description(""))
      ->type_name("NAME");
  command
      ->add_option("--leaves", options->leaves,
                   "the last ply's moves are counted in bulk (default), or each made on the board")
      ->check(CLI::IsMember({"counted", "made"}).description(""))
      ->type_name("KIND");
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  CLI::Option* threads = number("--threads", options->threads, 1, std::max(1024, cores), "threads");
  CLI::Option* hash = number("--hash", options->hash_mb, 0, 1 << 20,
                             "megabytes for a table of positions already counted (a power of two)");
  CLI::Option* compare_flag =
      command->add_flag("--compare", options->compare,
                        "the back ends on the six standard positions, in turns, as a table");
  CLI::Option* rounds = number("--rounds", options->rounds, 1, 1000, "rounds of --compare");
  rounds->needs(compare_flag);
  for (CLI::Option* other : {depth, divide, threads, hash, sliders, chess960})
    compare_flag->excludes(other);
  command->add_flag("--json", options->json, "{\"nodes\": N}, or the table of --compare")
      ->excludes(divide);
  command->callback([options, &exit_code] {
    if (!options->compare && options->depth < 0) throw CLI::RequiredError("--depth");
    if (options->compare && !(options->position.fen.empty() && options->position.moves.empty()))
      throw CLI::ValidationError("--compare", "has its own positions");
    exit_code = run(*options);
  });
}

}  // namespace tahl::app
