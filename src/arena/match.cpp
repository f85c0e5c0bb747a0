#include "arena/match.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <ctime>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "chess/movegen.h"
#include "chess/pgn.h"

namespace tahl::arena {
namespace {

// One well-mixed seed from several numbers (splitmix64's finaliser, Vigna).
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15ull + b + 0x632be59bd9b4e019ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y.%m.%d", &utc);
  return text;
}

std::string round_of(int number) { return fmt::format("{}.{}", number / 2 + 1, number % 2 + 1); }

std::optional<int> number_of(std::string_view round) {
  int pair = 0, game = 0;
  const char* end = round.data() + round.size();
  const auto first = std::from_chars(round.data(), end, pair);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, game);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  if (pair < 1 || pair > 1 << 29 || game < 1 || game > 2) return std::nullopt;
  return (pair - 1) * 2 + game - 1;
}

// Hands games on in the order of their numbers.
class InOrder {
 public:
  InOrder(std::vector<int> numbers, const std::function<void(const MatchGame&)>& report)
      : numbers_(std::move(numbers)), report_(report) {}
  void add(MatchGame game) {
    const std::lock_guard lock(mutex_);
    const int number = game.number;
    waiting_.emplace(number, std::move(game));
    for (; next_ < numbers_.size(); ++next_) {
      const auto found = waiting_.find(numbers_[next_]);
      if (found == waiting_.end()) break;
      report_(found->second);
      waiting_.erase(found);
    }
  }
  void flush() {
    for (const auto& [number, game] : waiting_) report_(game);
    waiting_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<int> numbers_;
  std::size_t next_ = 0;
  std::map<int, MatchGame> waiting_;
  const std::function<void(const MatchGame&)>& report_;
};

}  // namespace

Game random_opening(std::uint64_t seed, int pair, int plies) {
  std::mt19937_64 lots(mix(seed, static_cast<std::uint64_t>(pair)));
  while (true) {
    Game game;
    while (game.ply() < plies && !game.outcome()) {
      const MoveList legal = legal_moves(game.position());
      game.play(legal[static_cast<int>(lots() % static_cast<unsigned>(legal.size()))]);
    }
    if (!game.outcome()) return game;
  }
}

MatchGame play_game(search::Player& white, search::Player& black, const Game& opening,
                    const MatchOptions& options, std::stop_token stop) {
  MatchGame played;
  played.game = opening;
  Game& game = played.game;
  white.new_game();
  black.new_game();
  while (true) {
    if (const auto outcome = game.outcome()) {
      played.result = outcome->result;
      played.termination = to_string(outcome->ending);
      return played;
    }
    if (game.ply() >= options.max_plies) {
      played.result = Result::Draw;
      played.termination = "max plies";
      return played;
    }
    search::Player& player = game.position().side_to_move() == Color::White ? white : black;
    const Move move = player.choose(game, options.limits, stop).move;
    if (stop.stop_requested()) return played;  // a move made in haste does not count
    if (!is_legal(game.position(), move)) {    // only a foreign player can do this
      played.result =
          game.position().side_to_move() == Color::White ? Result::BlackWins : Result::WhiteWins;
      played.termination = "illegal move";
      return played;
    }
    game.play(move);
  }
}

Expected<void> play_match(const Contestant& first, const Contestant& second,
                          const MatchOptions& options, const std::map<int, Result>& done,
                          const std::function<void(const MatchGame&)>& report,
                          std::stop_token stop) {
  std::vector<int> numbers;
  for (int n = 0; n < (options.games + 1) / 2 * 2; ++n)
    if (!done.count(n)) numbers.push_back(n);
  if (numbers.empty()) return {};
  const int workers = std::clamp(options.concurrency, 1, static_cast<int>(numbers.size()));

  struct Players {
    std::unique_ptr<search::Player> first, second;
  };
  std::vector<Players> players;
  for (int i = 0; i < workers; ++i) {
    auto a = first.make(), b = second.make();
    if (!a) return tl::unexpected(a.error());
    if (!b) return tl::unexpected(b.error());
    players.push_back({*std::move(a), *std::move(b)});
  }

  InOrder in_order(numbers, report);
  std::atomic<std::size_t> next = 0;
  const auto work = [&](Players& p) {
    while (!stop.stop_requested()) {
      const std::size_t i = next++;
      if (i >= numbers.size()) return;
      const int number = numbers[i];
      const std::uint64_t seed = mix(options.seed, ~static_cast<std::uint64_t>(number));
      p.first->seed(mix(seed, 1));
      p.second->seed(mix(seed, 2));
      const bool swapped = number % 2 == 1;
      MatchGame game =
          play_game(swapped ? *p.second : *p.first, swapped ? *p.first : *p.second,
                    random_opening(options.seed, number / 2, options.opening_plies), options, stop);
      if (game.result == Result::Unknown) return;  // stopped
      game.number = number;
      in_order.add(std::move(game));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < workers; ++i)
      threads.emplace_back([&, i] { work(players[static_cast<std::size_t>(i)]); });
    work(players[0]);
  }
  in_order.flush();
  return {};
}

Score score_of(const std::map<int, Result>& results) {
  Score score;
  const auto half_points = [](int number, Result r) {  // of the first player
    if (r == Result::Draw) return 1;
    return (r == Result::WhiteWins) == (number % 2 == 0) ? 2 : 0;
  };
  for (const auto& [number, result] : results) {
    const int points = half_points(number, result);
    ++(points == 2 ? score.wins : points == 1 ? score.draws : score.losses);
    const auto partner = results.find(number + 1);
    if (number % 2 == 0 && partner != results.end())
      ++score.pairs[static_cast<std::size_t>(points + half_points(number + 1, partner->second))];
  }
  return score;
}

std::string match_pgn(const MatchGame& game, const Contestant& first, const Contestant& second) {
  const bool swapped = game.number % 2 == 1;
  PgnTagList tags = {{"Event", "tahl match"},
                     {"Date", today()},
                     {"Round", round_of(game.number)},
                     {"White", swapped ? second.name : first.name},
                     {"Black", swapped ? first.name : second.name},
                     {"Result", std::string(to_string(game.result))},
                     {"PlyCount", fmt::format("{}", game.game.ply())},
                     {"Termination", game.termination}};
  PgnWriteOptions options;
  options.result = game.result;
  return to_pgn(game.game, tags, options);
}

Expected<std::map<int, MatchGame>> read_match(const std::filesystem::path& path,
                                              const Contestant& first, const Contestant& second,
                                              const MatchOptions& options) {
  auto reader = PgnReader::open(path);
  if (!reader) return tl::unexpected(reader.error());
  std::map<int, MatchGame> games;
  while (const PgnGame* pgn = reader->next()) {
    if (!pgn->ok() || !pgn->has_terminator || pgn->result == Result::Unknown) continue;  // cut off
    const auto number = number_of(pgn->tags.find("Round").value_or(""));
    MatchGame game;
    game.game = to_game(*pgn);
    game.result = pgn->result;
    game.termination = pgn->tags.find("Termination").value_or("");
    bool fits = number.has_value();
    if (fits) {
      game.number = *number;
      const Game opening = random_opening(options.seed, *number / 2, options.opening_plies);
      const auto& moves = game.game.moves();
      const auto& expected = opening.moves();
      const bool swapped = *number % 2 == 1;
      fits = moves.size() >= expected.size() &&
             std::equal(expected.begin(), expected.end(), moves.begin()) &&
             pgn->tags.find("White") == std::string_view(swapped ? second.name : first.name) &&
             pgn->tags.find("Black") == std::string_view(swapped ? first.name : second.name);
    }
    if (!fits)
      return fail("{}: line {}: this game is of another match (players, seed or openings differ)",
                  path.string(), pgn->line);
    games.emplace(game.number, std::move(game));
  }
  // What breaks off at the end is the game that was being written.
  return games;
}

}  // namespace tahl::arena
