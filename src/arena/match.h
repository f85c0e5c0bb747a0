#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "arena/elo.h"
#include "chess/error.h"
#include "chess/game.h"
#include "search/player.h"

namespace tahl::arena {

struct MatchOptions {
  int games = 100;         // made even: they come in pairs, an opening with both colours
  std::uint64_t seed = 1;  // of openings and of players that draw lots
  int opening_plies = 8;   // random moves before the players take over
  int max_plies = 600;     // a longer game is a draw
  int concurrency = 1;     // games at once, each with its own players
  search::Limits limits;   // of every move, beside the players' own
};

// A game of a match. Even numbers have the first player White, and number n + 1 has the opening of
// n.
struct MatchGame {
  int number = 0;  // from 0
  Game game;
  Result result = Result::Unknown;
  std::string termination;  // "checkmate", ..., "max plies"
};

// One side: a name for people, and a maker that is called once for each game at a time.
struct Contestant {
  std::string name;
  std::function<Expected<std::unique_ptr<search::Player>>()> make;
};

// `plies` random legal moves from the initial position, the same for the same seed and pair; never
// the end of a game.
Game random_opening(std::uint64_t seed, int pair, int plies);

// A whole game from `opening` on. Draws that may be claimed are. Unknown result if it was stopped.
// `limits` serve both.
MatchGame play_game(search::Player& white, search::Player& black, const Game& opening,
                    const MatchOptions& options, std::stop_token stop);

// Plays all games but those in `done`. `report` gets each as it ends, in the order of numbers as
// far as games in parallel allow: a game is held back until those before it are there, or the match
// is stopped. Calls never overlap. A deterministic player against its equal scores exactly half.
Expected<void> play_match(const Contestant& first, const Contestant& second,
                          const MatchOptions& options, const std::map<int, Result>& done,
                          const std::function<void(const MatchGame&)>& report,
                          std::stop_token stop);

// From the first player's side; pairs with one game missing are not in `pairs`.
Score score_of(const std::map<int, Result>& results);

// A game of the match as PGN text, and the games of an earlier run found in such a file, by number.
// Games that were cut off are left out. An error if a game's players or opening are not this
// match's.
std::string match_pgn(const MatchGame& game, const Contestant& first, const Contestant& second);
Expected<std::map<int, MatchGame>> read_match(const std::filesystem::path& path,
                                              const Contestant& first, const Contestant& second,
                                              const MatchOptions& options);

}  // namespace tahl::arena
