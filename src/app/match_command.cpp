#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/interrupt.h"
#include "arena/match.h"

namespace tahl::app {
namespace {

using nlohmann::json;

struct MatchCommand {
  std::string first, second;
  arena::MatchOptions options;
  std::string pgn;
  bool as_json = false, resume = false;
  std::int64_t nodes = 0, movetime = 0;
  int depth = 0;
};

std::string signed_or(std::optional<double> x, const char* otherwise) {
  return x ? fmt::format("{:+.0f}", *x) : otherwise;
}

// "+20 =7 -10, 63.5 % +- 12.1, Elo +96 [+3, +211]"
std::string summary(const arena::Score& score) {
  const arena::Estimate e = arena::estimate(score);
  const char* infinite = e.share > .5 ? "+inf" : "-inf";
  return fmt::format("+{} ={} -{}, {:.1f} % +- {:.1f}, Elo {} [{}, {}]", score.wins, score.draws,
                     score.losses, 100 * e.share, 100 * e.error, signed_or(e.elo, infinite),
                     signed_or(e.low, "-inf"), signed_or(e.high, "+inf"));
}

std::string duration(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + .5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

// One line on stderr, rewritten on a terminal and else renewed now and then.
class Progress {
 public:
  explicit Progress(int games) : games_(games) {}
  void show(const arena::Score& score, int played_now) {
    using namespace std::chrono;
    const auto now = steady_clock::now();
    if (now - last_ < (terminal_ ? milliseconds(200) : milliseconds(30000)) &&
        score.games() < games_)
      return;
    last_ = now;
    const double spent = duration_cast<std::chrono::duration<double>>(now - begin_).count();
    const double left = spent / std::max(1, played_now) * (games_ - score.games());
    fmt::print(stderr, "{}{}/{} games, {}, {} left{}", terminal_ ? "\r\033[K" : "", score.games(),
               games_, summary(score), duration(left), terminal_ ? "" : "\n");
    std::fflush(stderr);
  }
  void clear() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  int games_;
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_{};
};

json to_json(const MatchCommand& c, const arena::Score& score,
             const std::map<std::string, int>& endings, double seconds, bool complete) {
  const arena::Estimate e = arena::estimate(score);
  const auto number = [](std::optional<double> x) { return x ? json(*x) : json(nullptr); };
  return {{"first", c.first},     {"second", c.second},       {"games", score.games()},
          {"wins", score.wins},   {"draws", score.draws},     {"losses", score.losses},
          {"pairs", score.pairs}, {"score", e.share},         {"score_error", e.error},
          {"elo", number(e.elo)}, {"elo_low", number(e.low)}, {"elo_high", number(e.high)},
          {"endings", endings},   {"seed", c.options.seed},   {"seconds", seconds},
          {"complete", complete}};
}

Expected<arena::Contestant> contestant(const std::string& text, const MatchCommand& c,
                                       nn::EvaluatorPool& pool) {
  const Expected<search::PlayerSpec> spec = search::parse_player_spec(text);
  if (!spec) return tl::unexpected(spec.error());
  if (!search::is_bounded(*spec) && c.nodes == 0 && c.movetime == 0 && c.depth == 0)
    return fail(
        "player {}: would think for ever; give it nodes=, depth= or movetime=, or the match "
        "--nodes, "
        "--depth or --movetime",
        tahl::quoted(text));
  return arena::Contestant{text, [spec = *spec, seed = c.options.seed, &pool] {
                             return search::make_player(spec, seed, &pool);
                           }};
}

// What an earlier run wrote, without a game that it left unfinished at the end.
Expected<void> rewrite(const std::filesystem::path& path,
                       const std::map<int, arena::MatchGame>& games, const arena::Contestant& first,
                       const arena::Contestant& second) {
  std::filesystem::path temporary = path;
  temporary += ".part";
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  for (const auto& [number, game] : games) out << arena::match_pgn(game, first, second);
  out.close();
  if (!out) return fail("{}: cannot write", temporary.string());
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) return fail("{}: {}", path.string(), error.message());
  return {};
}

Expected<void> run_match(MatchCommand c) {
  if (c.nodes > 0) c.options.limits.nodes = c.nodes;
  if (c.depth > 0) c.options.limits.depth = c.depth;
  if (c.movetime > 0) c.options.limits.movetime = std::chrono::milliseconds(c.movetime);
  c.options.limits.move_overhead = std::chrono::milliseconds(0);
  c.options.games += c.options.games % 2;
  const Interrupt interrupt;
  nn::EvaluatorPool pool;
  const auto first = contestant(c.first, c, pool), second = contestant(c.second, c, pool);
  if (!first) return tl::unexpected(first.error());
  if (!second) return tl::unexpected(second.error());

  std::map<int, Result> results;
  std::map<std::string, int> endings;
  const auto count = [&](const arena::MatchGame& game) {
    results[game.number] = game.result;
    ++endings[game.termination];
  };
  std::ofstream pgn;
  if (!c.pgn.empty()) {
    const bool there = std::filesystem::exists(c.pgn);
    if (there && !c.resume) return fail("{}: is there already; --resume goes on with it", c.pgn);
    if (there) {
      const auto games = arena::read_match(c.pgn, *first, *second, c.options);
      if (!games) return tl::unexpected(games.error());
      for (const auto& [number, game] : *games) count(game);
      if (auto done = rewrite(c.pgn, *games, *first, *second); !done) return done;
    }
    pgn.open(c.pgn, std::ios::binary | std::ios::app);
    if (!pgn) return fail("{}: cannot write", c.pgn);
  }

  const auto begin = std::chrono::steady_clock::now();
  const std::size_t before = results.size();
  Progress progress(c.options.games);
  bool written = true;
  const auto report = [&](const arena::MatchGame& game) {
    count(game);
    if (pgn.is_open())
      written = static_cast<bool>(pgn << arena::match_pgn(game, *first, *second) << std::flush) &&
                written;
    progress.show(arena::score_of(results), static_cast<int>(results.size() - before));
  };
  const auto done = arena::play_match(*first, *second, c.options, std::map<int, Result>(results),
                                      report, interrupt.token());
  progress.clear();
  if (!done) return done;
  if (!written) return fail("{}: cannot write", c.pgn);

  const arena::Score score = arena::score_of(results);
  const bool complete = score.games() >= c.options.games;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (c.as_json) {
    fmt::print("{}\n", to_json(c, score, endings, seconds, complete).dump());
  } else {
    fmt::print("{} - {}: {} games, {}\n", c.first, c.second, score.games(), summary(score));
    std::string ends;
    for (const auto& [ending, n] : endings)
      ends += fmt::format("{}{} {}", ends.empty() ? "" : ", ", n, ending);
    if (!ends.empty()) fmt::print("{}; {}\n", ends, duration(seconds));
  }
  std::fflush(stdout);
  if (!complete)
    return fail("match: stopped after {} of {} games{}", score.games(), c.options.games,
                c.pgn.empty() ? "" : "; --resume goes on");
  return {};
}

}  // namespace

void add_match_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("match", "play two players against each other");
  auto c = std::make_shared<MatchCommand>();
  command->footer(
      "Players: policy[:net=FILE,temperature=T,finish=0-2], mcts[:net=FILE,nodes=N,...], "
      "minimax[:depth=N],\n"
      "random; for those with a net also precision=auto|fp32|bf16|int8 and threads=N. Every "
      "opening of random moves is played twice, with colours changed.");
  command->add_option("first", c->first, "a player")->required();
  command->add_option("second", c->second, "another")->required();
  command->add_option("--games", c->options.games, "how many, rounded up to pairs")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--seed", c->options.seed, "of openings and of players that draw lots")
      ->capture_default_str();
  command
      ->add_option("--opening-plies", c->options.opening_plies,
                   "random moves before the players begin")
      ->check(CLI::Range(0, 60))
      ->capture_default_str();
  command->add_option("--max-plies", c->options.max_plies, "a longer game is a draw")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--nodes", c->nodes, "limit of every move")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{4'000'000'000}));
  command->add_option("--depth", c->depth, "limit of every move")->check(CLI::Range(1, 100));
  command->add_option("--movetime", c->movetime, "limit of every move, milliseconds")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}));
  command->add_option("--concurrency", c->options.concurrency, "games at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--pgn", c->pgn, "write the games here");
  command->add_flag("--resume", c->resume, "go on where the --pgn file ends");
  command->add_flag("--json", c->as_json, "print the result as JSON");
  command->callback([c, &exit_code] {
    const Expected<void> done = run_match(*c);
    exit_code = done ? 0 : print_error(done.error());
  });
}

}  // namespace tahl::app
