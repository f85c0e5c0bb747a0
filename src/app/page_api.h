#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/server.h"
#include "chess/error.h"
#include "nn/evaluator.h"
#include "search/player.h"

namespace tahl::app {

// What `tahl play` starts the page with.
struct BoardOptions {
  std::string net;  // file; empty: the embedded one
  std::string player =
      "policy";     // how the net chooses: "policy" or "mcts", and further options of that player
  int depth = 3;    // of minimax
  int nodes = 400;  // of mcts
  double temperature =
      0.3;  // 0.3: nearly always the best move or one as good, yet no two games alike
  bool human_is_black = false;
  std::uint64_t seed = 0;  // of players that draw lots; 0: another every time
};

// Answers what the page asks. The page holds the game, as a start and its moves; here are the rules
// and the players.
//   GET  /api/config                                    -> how to begin
//   POST /api/position {start, moves}                   -> fen, turn, dests, promotions, check,
//   uci, san, outcome POST /api/evaluate {start, moves}                   -> what the net thinks:
//   value_for_white, top POST /api/move     {start, moves, player, game}     -> uci, san,
//   value_for_white, top, nodes, depth, ms POST /api/pgn      {start, moves, white, black}     ->
//   pgn POST /api/load     {text}                           -> start, moves, read from FEN or PGN
// `start` is a FEN (null: the usual one), `moves` are UCI or SAN, `player` {kind, depth, nodes,
// temperature}, `game` any text that names the game: a new /api/move for a game stops the one under
// way. Reference: docs/board.md.
class BoardApi {
 public:
  static Expected<std::unique_ptr<BoardApi>> create(const BoardOptions& options);

  HttpReply handle(const HttpRequest& request, const std::stop_source& stop);
  // "RDTChess 128x8", or empty if there is no net.
  const std::string& net_name() const { return net_name_; }

 private:
  struct IdlePlayer {
    std::string spec, game;
    std::unique_ptr<search::Player> player;
  };
  struct Search {
    std::uint64_t id;
    std::stop_source stop;
  };
  explicit BoardApi(BoardOptions options) : options_(std::move(options)) {}
  HttpReply config() const;
  HttpReply evaluate(const Game& game);
  HttpReply move(const Game& game, const search::PlayerSpec& spec, const search::Limits& limits,
                 const std::string& game_name, const std::stop_source& stop);
  Expected<std::unique_ptr<search::Player>> take_player(const search::PlayerSpec& spec,
                                                        const std::string& game);

  BoardOptions options_;
  std::vector<std::pair<std::string, std::string>>
      extra_;  // options of --player that the page does not set
  std::string
      launch_;  // another with each start, so that the page knows whether its game is this server's

  nn::EvaluatorPool pool_;  // of the net below and those of all players
  std::mutex net_mutex_;
  std::unique_ptr<nn::Evaluator> net_;  // null if there is none
  std::string net_name_, no_net_;       // no_net_: why

  std::mutex players_mutex_;
  std::vector<IdlePlayer> idle_;  // latest last
  std::map<std::string, Search> searches_;
  std::uint64_t next_id_ = 1;
};

}  // namespace tahl::app
