#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "app/uci_options.h"
#include "app/uci_text.h"
#include "chess/error.h"
#include "chess/game.h"
#include "search/player.h"

namespace tahl::app {

using PlayerFactory =
    std::function<Expected<std::unique_ptr<search::Player>>(const UciOptions& options)>;
// The program's own players (search/player.h).
Expected<std::unique_ptr<search::Player>> make_uci_player(const UciOptions& options);

// One conversation with a GUI. The caller's thread reads and calls handle(), which never waits for
// a search but to end it; each `go` has a thread of its own. Lines go out whole and flushed. The
// player is built when first needed (isready, go), so that `uci` is answered at once.
class UciSession {
 public:
  UciSession(std::ostream& out, PlayerFactory make_player);
  ~UciSession();  // ends a search, whose bestmove still goes out

  // False at `quit`.
  bool handle(std::string_view line);
  // The end of input stops a search, but lets `go perft` finish, so that it can be piped in.
  void handle_end_of_input();
  void complain(std::string_view text);  // "info string error: TEXT"

 private:
  void identify();
  void ready();
  void set_position(const std::vector<std::string_view>& words);
  void set_option(std::string_view line);
  void new_game();
  void go(const std::vector<std::string_view>& words);
  void ponder_hit();
  void request_stop();
  void end_search();  // request_stop, and wait for bestmove
  bool is_searching() const { return searching_; }
  void prepare_player();  // builds what options ask for, or keeps the old one and complains

  // On the search thread.
  void search(std::stop_token stop, const Game& game, const search::Limits& limits,
              const InfoStyle& style);
  void perft(const std::stop_token& stop, const Game& game, int depth);
  search::Choice choose(const std::stop_token& stop, const Game& game, const search::Limits& limits,
                        const search::Report& report);

  void send(std::string_view text);  // one or more lines

  std::ostream& out_;
  std::mutex out_mutex_;
  PlayerFactory make_player_;
  UciOptions options_;
  UciOptions built_with_;  // the options of player_
  std::unique_ptr<search::Player> player_;
  bool player_is_stale_ = true;
  bool new_game_is_due_ = false;
  bool debug_ = false;
  Game game_;

  std::atomic<bool> searching_ = false;
  std::mutex hold_mutex_;  // guards ponder_hit_ for the wait of a held bestmove
  std::condition_variable_any hold_;
  std::atomic<bool> ponder_hit_ = false;
  bool counting_ = false;       // search_thread_ runs perft
  std::jthread search_thread_;  // last: ends before what it uses
};

// Reads `in` to `quit` or its end.
void run_uci(std::istream& in, std::ostream& out, PlayerFactory make_player = make_uci_player);

}  // namespace tahl::app
