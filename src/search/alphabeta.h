#pragma once

#include <optional>

#include "search/player.h"

namespace tahl::search {

struct AlphaBetaOptions {
  // Caps beside the limits of each call.
  std::optional<int> depth;
  std::optional<std::int64_t> nodes;
  std::optional<std::chrono::milliseconds> movetime;
  int hash_megabytes = 16;  // transposition table
};

inline constexpr int kMaxDepth = 100;
inline constexpr int kMateScore = 30000;  // less the plies to the mate

// Minimax with the hand-written evaluation: iterative deepening alpha-beta. Every pruning is exact:
// at a fixed depth the score is that of plain negamax over static_eval with quiescence, which the
// tests hold it to. So depth N means what it says, as a yardstick's should; a stronger engine would
// forgo that.
std::unique_ptr<Player> alphabeta_player(const AlphaBetaOptions& options);

// The moves that quiescence looks at: all of them in check, else captures and promotions to a queen
// that do not lose material by static exchange.
void quiescence_moves(const Position& position, MoveList& out);
// The score of a leaf, in centipawns for the side to move, before quiescence tries moves:
// static_eval, or 0 for a draw that shows at once (dead material, or a stalemate of king and
// pawns). Precondition: not in check.
int stand_pat(const Position& position);

}  // namespace tahl::search
