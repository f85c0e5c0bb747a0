#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "chess/error.h"
#include "chess/game.h"
#include "nn/evaluator_pool.h"

namespace tahl::search {

// When to stop; whatever comes first. Nothing set means: until stopped.
struct Limits {
  std::optional<std::int64_t> nodes;
  std::optional<int> depth;
  std::optional<std::chrono::milliseconds> movetime;
  // Clocks by colour (White first) as UCI gives them; negative or zero means move at once.
  std::array<std::optional<std::chrono::milliseconds>, 2> time{};
  std::array<std::chrono::milliseconds, 2> increment{};
  std::optional<int> moves_to_go;
  std::optional<int> mate;         // look for a mate in so many moves
  std::vector<Move> search_moves;  // only these, if any
  bool infinite = false;
  bool ponder = false;  // the clock starts at ponderhit
  int multi_pv = 1;
  std::chrono::milliseconds move_overhead{30};
  // Set by the caller while pondering: becomes true at ponderhit.
  std::function<bool()> ponder_hit;
};

// A principal variation and what it is worth to the side to move.
struct Line {
  std::vector<Move> moves;
  double value = 0;               // expected result, -1 to 1
  std::optional<int> centipawns;  // where the player thinks in them
  std::optional<int> mate_in;     // moves, negative when mated; 0 = is mated
  double p = 0;                   // prior or share of visits
};

struct Info {
  int depth = 0, seldepth = 0;
  std::int64_t nodes = 0;
  std::chrono::milliseconds time{};
  std::vector<Line> lines;  // best first
};

// The decision. `move` is false (a1a1) only if there is no legal move.
struct Choice {
  Move move;
  std::optional<Move> ponder;
  Info info;
  std::vector<std::pair<Move, double>>
      policy;  // share of every legal move: probabilities, visits, or 1 for the chosen
};

using Report = std::function<void(const Info&)>;

// Something that chooses moves. One game at a time, one call at a time; may keep state between
// calls.
class Player {
 public:
  virtual ~Player() = default;
  // Returns soon after `stop` is requested, always with a legal move if there is one.
  virtual Choice choose(const Game& game, const Limits& limits, std::stop_token stop,
                        const Report& report = {}) = 0;
  virtual void new_game() {}
  // Starts the player's lots (random moves, temperature) anew. Others ignore it.
  virtual void seed(std::uint64_t) {}
  virtual std::string name() const = 0;
};

// Players by text, for command lines: "policy:net=FILE,temperature=0.3,finish=1",
// "mcts:net=FILE,nodes=800", "minimax:depth=2", "random:seed=1". Those with a net take how to
// compute it, precision=auto|fp32|bf16|int8 and threads=N. An error names the part that is wrong.
struct PlayerSpec {
  std::string text;
  std::string kind;
  std::vector<std::pair<std::string, std::string>> options;
};
Expected<PlayerSpec> parse_player_spec(std::string_view text);
// True if the player comes to an end without limits from outside: it has a depth, nodes or
// movetime, or does not search.
bool is_bounded(const PlayerSpec& spec);
// `seed` serves players that draw lots and have no seed of their own. Players that are made with
// the same pool share nets and caches; without one, each reads its own.
Expected<std::unique_ptr<Player>> make_player(const PlayerSpec& spec, std::uint64_t seed = 1,
                                              nn::EvaluatorPool* pool = nullptr);

}  // namespace tahl::search
