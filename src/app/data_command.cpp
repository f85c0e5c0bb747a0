#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/console.h"
#include "app/interrupt.h"
#include "chess/fen.h"
#include "chess/notation.h"
#include "learn/data_pack.h"

namespace tahl::app {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string duration(double seconds) {
  const auto s = static_cast<long>(seconds);
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

// ---- pack ----

// One line that is rewritten on a terminal, and now and then a new one elsewhere.
class PackLine {
 public:
  explicit PackLine(const learn::PackOptions& options) : options_(options) {}

  void show(const learn::PackProgress& p) {
    const double seconds = elapsed();
    if (first_seen_ == kNone) first_seen_ = p.counts.seen, first_seconds_ = seconds;
    if (!terminal_ && seconds < next_) return;
    next_ = seconds + 10;
    const double rate =
        seconds > first_seconds_
            ? static_cast<double>(p.counts.seen - first_seen_) / (seconds - first_seconds_)
            : 0;
    std::string line = fmt::format("{} ({} of {}): {} games, {} kept, {:.0f} games/s",
                                   options_.inputs[p.input].filename().string(), p.input + 1,
                                   options_.inputs.size(), p.counts.seen, p.counts.kept(), rate);
    if (const auto left = remaining(p, seconds)) line += fmt::format(", {} left", duration(*left));
    fmt::print(stderr, "{}{}{}", terminal_ ? "\r" : "", line, terminal_ ? "\033[K" : "\n");
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }
  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  // From --max-games or, for plain text, from the file's size.
  std::optional<double> remaining(const learn::PackProgress& p, double seconds) const {
    double done = 0;
    if (options_.max_games > 0) {
      done = static_cast<double>(p.counts.kept()) / static_cast<double>(options_.max_games);
    } else {
      double total = 0, read = static_cast<double>(p.text_bytes);
      for (std::size_t i = 0; i < options_.inputs.size(); ++i) {
        if (options_.inputs[i].extension() != ".pgn") return std::nullopt;
        std::error_code error;
        const auto size = static_cast<double>(fs::file_size(options_.inputs[i], error));
        total += size;
        if (i < p.input) read += size;
      }
      done = total > 0 ? read / total : 0;
    }
    return done > 0.01 ? std::optional(seconds * (1 - done) / done) : std::nullopt;
  }

  static constexpr std::uint64_t kNone = ~0ull;
  const learn::PackOptions& options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::uint64_t first_seen_ = kNone;
  double first_seconds_ = 0, next_ = 0;
};

json to_json(const learn::PackOptions& options, const learn::PackReport& report) {
  json splits;
  for (const learn::Split s : learn::kSplits) {
    const auto i = static_cast<std::size_t>(s);
    splits[std::string(to_string(s))] = {{"file", report.files[i].filename().string()},
                                         {"games", report.counts.games[i]},
                                         {"plies", report.counts.plies[i]}};
  }
  json inputs = json::array();
  for (const auto& input : options.inputs) inputs.push_back(input.filename().string());
  const auto& c = report.counts;
  return {{"format", "tshard 1"},
          {"inputs", inputs},
          {"min_elo", options.min_elo},
          {"min_plies", options.min_plies},
          {"val", options.val},
          {"test", options.test},
          {"shard", options.shard},
          {"shards", options.shards},
          {"games_seen", c.seen},
          {"left_out",
           {{"below_elo", c.below_elo},
            {"bad", c.bad},
            {"unfinished", c.unfinished},
            {"short", c.too_short},
            {"duplicate", c.duplicate}}},
          {"splits", splits}};
}

int pack(const learn::PackOptions& options, bool as_json) {
  const Interrupt interrupt;
  PackLine line(options);
  const auto report =
      learn::pack(options, interrupt.token(), [&](const learn::PackProgress& p) { line.show(p); });
  line.clear();
  if (!report) return print_error(report.error());
  if (report->stopped) {
    fmt::print(stderr, "stopped after {} games; the same command continues\n", report->counts.seen);
    return 0;
  }
  const json manifest = to_json(options, *report);
  const fs::path path =
      options.out / (options.shards == 1 ? std::string("manifest.json")
                                         : fmt::format("manifest-{:05}-of-{:05}.json",
                                                       options.shard, options.shards));
  const fs::path temporary = path.string() + ".new";
  {
    std::ofstream out(temporary);
    out << manifest.dump(2) << '\n';
    out.close();
    std::error_code error;
    if (out) fs::rename(temporary, path, error);
    if (!out || error) return print_error(fmt::format("pack: cannot write {}", path.string()));
  }
  if (as_json) {
    fmt::print("{}\n", manifest.dump());
    return 0;
  }
  const auto& c = report->counts;
  if (report->already_done) fmt::print("already packed\n");
  fmt::print(
      "{} games read, {} kept; left out: {} by rating, {} duplicates, {} short, {} unfinished, {} "
      "with errors\n",
      c.seen, c.kept(), c.below_elo, c.duplicate, c.too_short, c.unfinished, c.bad);
  for (const learn::Split s : learn::kSplits) {
    const auto i = static_cast<std::size_t>(s);
    fmt::print("{:<6}{:>9} games {:>11} plies  {}\n", to_string(s), c.games[i], c.plies[i],
               report->files[i].string());
  }
  if (!report->already_done) fmt::print("{:.1f} s\n", line.elapsed());
  return 0;
}

// ---- show ----

struct ShowOptions {
  fs::path path;
  std::int64_t game = -1;
  bool check = false;
  bool json = false;
};

Expected<std::vector<fs::path>> shards_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector{path};
  std::vector<fs::path> all;
  for (const learn::Split s : learn::kSplits)
    if (const auto some = learn::find_shards(path, s))
      all.insert(all.end(), some->begin(), some->end());
  if (all.empty()) return fail("data: {} has no *.tshard", path.string());
  return all;
}

int show_game(const nn::GameView& view, bool as_json) {
  const auto game = nn::unpack_game(view);
  if (!game) return print_error(game.error());
  json moves = json::array();
  std::string text;
  for (std::size_t i = 0; i < game->moves().size(); ++i) {
    const Position& position = game->positions()[i];
    moves.push_back(to_uci(position, game->moves()[i], game->is_chess960()));
    if (position.side_to_move() == Color::White)
      text += fmt::format("{}. ", position.fullmove_number());
    text += to_san(position, game->moves()[i]) + ' ';
  }
  const std::string date = fmt::format("{:04}.{:02}.{:02}", view.year, view.month, view.day);
  if (as_json) {
    fmt::print("{}\n", json{{"start", to_fen(game->start())},
                            {"moves", moves},
                            {"result", std::string(to_string(view.result))},
                            {"white_elo", view.white_elo},
                            {"black_elo", view.black_elo},
                            {"date", date}}
                           .dump());
  } else {
    if (!view.start_fen.empty()) fmt::print("from {}\n", view.start_fen);
    fmt::print("{} Elo {} - {} {}\n{}{}\n", date, view.white_elo, view.black_elo,
               to_string(view.result), text, to_string(view.result));
  }
  return 0;
}

int show(const ShowOptions& options) {
  const auto files = shards_of(options.path);
  if (!files) return print_error(files.error());
  json all = json::array();
  auto wanted = options.game;
  for (const auto& file : *files) {
    const auto shard = nn::Shard::open(file);
    if (!shard) return print_error(shard.error());
    if (options.game >= 0) {
      if (wanted < static_cast<std::int64_t>(shard->size()))
        return show_game(shard->game(static_cast<std::size_t>(wanted)), options.json);
      wanted -= static_cast<std::int64_t>(shard->size());
      continue;
    }
    std::array<std::uint64_t, 4> results{};
    std::uint64_t rated = 0, elo = 0;
    for (std::size_t i = 0; i < shard->size(); ++i) {
      const nn::GameView game = shard->game(i);
      ++results[static_cast<std::size_t>(game.result)];
      if (game.white_elo > 0 && game.black_elo > 0)
        ++rated, elo += std::uint64_t{game.white_elo} + game.black_elo;
      if (options.check)
        if (const auto played = nn::unpack_game(game); !played)
          return print_error(
              fmt::format("{}: game {}: {}", file.string(), i, played.error().message));
    }
    const double mean_elo =
        rated > 0 ? static_cast<double>(elo) / static_cast<double>(2 * rated) : 0;
    if (options.json) {
      all.push_back({{"file", file.filename().string()},
                     {"games", shard->size()},
                     {"plies", shard->plies()},
                     {"bytes", shard->bytes()},
                     {"hash", fmt::format("{:016x}", shard->hash())},
                     {"white_wins", results[0]},
                     {"black_wins", results[1]},
                     {"draws", results[2]},
                     {"mean_elo", mean_elo}});
    } else {
      fmt::print(
          "{}: {} games, {} plies, {:.2f} bytes a ply, 1-0 {} 0-1 {} draws {}, mean Elo {:.0f}, "
          "{:016x}{}\n",
          file.string(), shard->size(), shard->plies(),
          static_cast<double>(shard->bytes()) /
              static_cast<double>(std::max<std::uint64_t>(1, shard->plies())),
          results[0], results[1], results[2], mean_elo, shard->hash(),
          options.check ? ", every move legal" : "");
    }
  }
  if (options.game >= 0)
    return print_error(
        fmt::format("data: there is no game {} in {}", options.game, options.path.string()));
  if (options.json) fmt::print("{}\n", all.dump());
  return 0;
}

}  // namespace

void add_data_command(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("data", "pack games for training, and look at what is packed");
  command->require_subcommand(1);

  CLI::App* packing = command->add_subcommand(
      "pack", "games (.pgn, .pgn.zst) to training shards; run again to continue");
  const auto options = std::make_shared<learn::PackOptions>();
  const auto share = std::make_shared<std::string>();
  const auto as_json = std::make_shared<bool>(false);
  packing->add_option("PGN", options->inputs, "files to read")->required();
  packing->add_option("-o,--out", options->out, "folder to write")->required();
  packing
      ->add_option("--min-elo", options->min_elo,
                   "rating of the weaker player; 0: any, unknown too")
      ->check(CLI::Range(0, 4000));
  packing->add_option("--min-plies", options->min_plies, "leave out shorter games")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  packing->add_option("--split-val", options->val, "share of games for validation")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  packing->add_option("--split-test", options->test, "share of games for the final test")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  packing->add_option("--shard", *share,
                      "I/N: take one game in N and write own files; I counts from 0");
  packing->add_option("--max-games", options->max_games, "stop after keeping so many; 0: all");
  packing->add_flag("--json", *as_json, "print the manifest");
  packing->callback([=, &exit_code] {
    if (!share->empty()) {
      char rest = 0;
      if (std::sscanf(share->c_str(), "%d/%d%c", &options->shard, &options->shards, &rest) != 2)
        throw CLI::ValidationError(
            fmt::format("--shard: \"{}\" is not of the form I/N", tahl::quoted(*share)));
    }
    exit_code = pack(*options, *as_json);
  });

  CLI::App* showing = command->add_subcommand("show", "what a shard or a folder of them holds");
  const auto shown = std::make_shared<ShowOptions>();
  showing->add_option("PATH", shown->path, "folder or .tshard file")->required();
  showing->add_option("--game", shown->game, "print the game with this number, from 0")
      ->check(CLI::NonNegativeNumber);
  showing->add_flag("--check", shown->check, "play every game");
  showing->add_flag("--json", shown->json, "machine-readable");
  showing->callback([=, &exit_code] { exit_code = show(*shown); });
}

}  // namespace tahl::app
