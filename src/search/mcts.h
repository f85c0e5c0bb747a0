#pragma once

#include "nn/evaluator.h"
#include "search/player.h"

namespace tahl::search {

struct MctsOptions {
  // Exploration, Q + c(N) P sqrt(N) / (1 + n) with c(N) = cpuct + cpuct_factor log((N + cpuct_base)
  // / cpuct_base). Values of lc0's params.cc (cpuct 1.745, base 38739, factor 3.894), tuned there
  // with far stronger nets.
  double cpuct = 1.745, cpuct_base = 38739, cpuct_factor = 3.894;
  double fpu_reduction =
      .33;  // an unvisited move is worth Q - this * sqrt(policy visited so far); lc0's value
  double policy_temperature = 1;  // of the priors
  int batch = 8;                  // leaves evaluated at once, fewer while the tree is small
  int tree_megabytes = 256;       // the search ends when the tree has grown to this
  bool reuse_tree = true;         // between the moves of a game
  double temperature = 0;  // the move is drawn by visits^(1 / this); 0 plays the most visited
  std::uint64_t seed = 1;  // of those draws
  // Caps beside the limits of each call.
  std::optional<std::int64_t> nodes;
  std::optional<int> depth;
  std::optional<std::chrono::milliseconds> movetime;
};

// Monte Carlo tree search with a network: PUCT, where mates and what follows from them are proven
// and exact (MCTS-Solver, Winands et al. 2008) and every node looks one ply ahead for mate. Nodes
// are visits of the root, those of a reused tree included; with `nodes` 1 it plays the network's
// first choice. Depth is the length of the principal variation. One thread: the same calls give the
// same moves.
std::unique_ptr<Player> mcts_player(std::unique_ptr<nn::Evaluator> evaluator,
                                    const MctsOptions& options);

}  // namespace tahl::search
