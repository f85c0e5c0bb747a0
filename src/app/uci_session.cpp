#include "app/uci_session.h"

#include <algorithm>
#include <istream>
#include <ostream>

#include "chess/fen.h"
#include "chess/movegen.h"
#include "chess/notation.h"
#include "chess/perft.h"

namespace tahl::app {
namespace {

// Longer lines are dropped: a thousand-move game needs 10 KB.
constexpr std::size_t kLongestLine = 1 << 20;

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

}  // namespace

UciSession::UciSession(std::ostream& out, PlayerFactory make_player)
    : out_(out), make_player_(std::move(make_player)) {}

UciSession::~UciSession() { end_search(); }

bool UciSession::handle(std::string_view line) {
  const std::vector<std::string_view> all = split_words(line);
  // Unknown words before a command are skipped, as the protocol asks ("joho debug on").
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string_view command = all[i];
    const auto rest = [&] {
      return std::vector<std::string_view>(all.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                           all.end());
    };
    if (command == "quit") return false;
    if (command == "uci") return identify(), true;
    if (command == "isready") return ready(), true;
    if (command == "ucinewgame") return new_game(), true;
    if (command == "position") return set_position(rest()), true;
    if (command == "setoption") return set_option(line), true;
    if (command == "go") return go(rest()), true;
    if (command == "stop") return request_stop(), true;
    if (command == "ponderhit") return ponder_hit(), true;
    if (command == "register") return true;
    if (command == "d") {
      send(board_text(game_.position()));
      return true;
    }
    if (command == "debug") {
      debug_ = i + 1 < all.size() ? all[i + 1] == "on" : debug_;
      return true;
    }
    if (debug_) send(fmt::format("info string skipped {}", quoted(command)));
  }
  return true;
}

void UciSession::handle_end_of_input() {
  if (counting_ && search_thread_.joinable()) search_thread_.join();
  end_search();
}

void UciSession::identify() {
  std::vector<std::string> lines = {"id name Tahl " TAHL_VERSION, "id author the Tahl authors"};
  for (std::string& line : option_lines()) lines.push_back(std::move(line));
  lines.push_back("uciok");
  send(join_lines(lines));
}

void UciSession::ready() {
  if (!is_searching()) prepare_player();
  send("readyok");
}

void UciSession::new_game() {
  end_search();
  new_game_is_due_ = true;
  game_ = Game();
}

void UciSession::set_position(const std::vector<std::string_view>& words) {
  end_search();
  auto word = std::find_if(words.begin(), words.end(),
                           [](std::string_view w) { return w == "startpos" || w == "fen"; });
  if (word == words.end()) return complain("position: neither startpos nor fen");
  Game game(Position::initial(), options_.chess960);
  const bool has_fen = *word++ == "fen";
  if (has_fen) {
    std::string fen;
    for (; word != words.end() && *word != "moves"; ++word) {
      if (!fen.empty()) fen += ' ';
      fen += *word;
    }
    const Expected<Position> position = parse_fen(fen);
    if (!position) return complain(position.error().message);
    game = Game(*position, options_.chess960);
  }
  word = std::find(word, words.end(), "moves");
  if (word != words.end()) ++word;
  for (int number = 1; word != words.end(); ++word, ++number) {
    if (*word == "0000" && !game.position().is_check()) {
      game.play_null();
      continue;
    }
    const Expected<Move> move = parse_uci(game.position(), *word, options_.chess960);
    if (!move) {  // the moves before it stand
      complain(fmt::format("position: move {}: {}", number, move.error().message));
      break;
    }
    game.play(*move);
  }
  game_ = std::move(game);
}

void UciSession::set_option(std::string_view line) {
  const std::optional<SetOption> option = parse_setoption(line);
  if (!option) return complain("setoption: expected \"setoption name NAME value VALUE\"");
  const Expected<OptionEffect> effect =
      tahl::app::set_option(options_, option->name, option->value);
  if (!effect) return complain(effect.error().message);
  if (*effect == OptionEffect::ClearHash) new_game_is_due_ = true;
  if (*effect != OptionEffect::RebuildPlayer) return;
  player_is_stale_ = true;
  // A net that cannot be loaded is reported now; while searching, at the next go.
  if (equal_ignoring_case(option->name, "Net") && !is_searching()) prepare_player();
}

void UciSession::prepare_player() {
  if (player_is_stale_) {
    Expected<std::unique_ptr<search::Player>> player = make_player_(options_);
    if (!player) {
      complain(player.error().message);
      // The old one stays. Without one, fall back on the default net and player.
      options_.net = built_with_.net;
      options_.precision = built_with_.precision;
      options_.player = built_with_.player;
      if (!player_) {
        player = make_player_(options_);
        if (!player) complain(player.error().message);
      }
    }
    if (player) {
      player_ = std::move(*player);
      built_with_ = options_;
      if (debug_) send(fmt::format("info string player {}", player_->name()));
    }
    player_is_stale_ = false;
  }
  if (new_game_is_due_ && player_) player_->new_game();
  new_game_is_due_ = false;
}

void UciSession::go(const std::vector<std::string_view>& words) {
  end_search();
  game_.set_chess960(options_.chess960);
  Go go = parse_go(words, game_);
  for (const std::string& complaint : go.complaints) complain(complaint);
  searching_ = true;
  counting_ = go.perft.has_value();
  if (go.perft) {
    search_thread_ = std::jthread([this, game = game_, depth = *go.perft](std::stop_token stop) {
      perft(stop, game, depth);
    });
    return;
  }
  prepare_player();
  search::Limits& limits = go.limits;
  limits.multi_pv = options_.multi_pv;
  limits.move_overhead = std::chrono::milliseconds(options_.move_overhead);
  if (options_.max_depth > 0)
    limits.depth = std::min(limits.depth.value_or(options_.max_depth), options_.max_depth);
  if (options_.max_nodes > 0)
    limits.nodes =
        std::min<std::int64_t>(limits.nodes.value_or(options_.max_nodes), options_.max_nodes);
  ponder_hit_ = false;
  limits.ponder_hit = [this] { return ponder_hit_.load(); };
  const InfoStyle style{.chess960 = options_.chess960, .show_wdl = options_.show_wdl};
  search_thread_ = std::jthread([this, game = game_, limits = std::move(limits), style](
                                    std::stop_token stop) { search(stop, game, limits, style); });
}

void UciSession::ponder_hit() {
  {
    const std::lock_guard lock(hold_mutex_);
    ponder_hit_ = true;
  }
  hold_.notify_all();
}

void UciSession::request_stop() { search_thread_.request_stop(); }

void UciSession::end_search() {
  search_thread_.request_stop();
  if (search_thread_.joinable()) search_thread_.join();
}

void UciSession::search(std::stop_token stop, const Game& game, const search::Limits& limits,
                        const InfoStyle& style) {
  const Position& root = game.position();
  search::Choice choice;
  if (has_legal_move(root)) {
    std::string shown;
    choice = choose(stop, game, limits, [&](const search::Info& info) {
      const std::vector<std::string> lines = info_lines(info, root, style);
      if (lines.empty()) return;
      shown = join_lines(lines);
      send(shown);
    });
    // Every bestmove has a line with its variation before it.
    if (choice.info.lines.empty()) choice.info.lines.emplace_back().moves = {choice.move};
    const std::string last = join_lines(info_lines(choice.info, root, style));
    if (last != shown) send(last);
  } else {
    send(root.is_check() ? "info depth 0 score mate 0" : "info depth 0 score cp 0");
  }
  if (limits.infinite || limits.ponder) {  // the GUI says when
    std::unique_lock lock(hold_mutex_);
    hold_.wait(lock, stop, [&] { return !limits.infinite && ponder_hit_; });
  }
  send(bestmove_line(choice, root, style.chess960));
  searching_ = false;
}

search::Choice UciSession::choose(const std::stop_token& stop, const Game& game,
                                  const search::Limits& limits, const search::Report& report) {
  search::Choice choice;
  if (player_) {
    try {
      choice = player_->choose(game, limits, stop, report);
    } catch (const std::exception& error) {  // memory, mostly
      complain(error.what());
    }
  }
  if (!is_legal(game.position(), choice.move)) {
    complain("no move from the player: the first legal one instead");
    choice = {};
    choice.move = legal_moves(game.position())[0];
  }
  return choice;
}

void UciSession::perft(const std::stop_token& stop, const Game& game, int depth) {
  std::uint64_t nodes = depth == 0 ? 1 : 0;
  if (depth > 0) {
    for (const Move move : legal_moves(game.position())) {
      Position next = game.position();
      next.make(move);
      const PerftResult below = perft_tree(next, depth - 1, {}, stop);
      if (!below.complete) break;
      nodes += below.nodes;
      send(fmt::format("{}: {}", to_uci(game.position(), move, game.is_chess960()), below.nodes));
    }
  }
  if (!stop.stop_requested()) send(fmt::format("\nNodes searched: {}\n", nodes));
  searching_ = false;
}

void UciSession::complain(std::string_view text) {
  send(fmt::format("info string error: {}", text));
}

void UciSession::send(std::string_view text) {
  const std::lock_guard lock(out_mutex_);
  out_ << text << '\n' << std::flush;
}

void run_uci(std::istream& in, std::ostream& out, PlayerFactory make_player) {
  UciSession session(out, std::move(make_player));
  std::string line;
  std::size_t length = 0;
  using Traits = std::istream::traits_type;
  for (;;) {
    const auto c = in.rdbuf()->sbumpc();
    const bool at_end = Traits::eq_int_type(c, Traits::eof());
    if (!at_end && c != '\n') {
      if (++length <= kLongestLine) line += Traits::to_char_type(c);
      continue;
    }
    if (length > kLongestLine) {
      session.complain(
          fmt::format("a line of {} bytes, at most {} are read", length, kLongestLine));
    } else if (!session.handle(line)) {
      return;
    }
    if (at_end) return session.handle_end_of_input();
    line.clear();
    length = 0;
  }
}

}  // namespace tahl::app
