#pragma once

#include "nn/evaluator.h"
#include "search/player.h"

namespace tahl::search {

struct PolicyOptions {
  double temperature =
      0;  // of the softmax over the legal moves that a move is drawn from; 0 plays the likeliest
  // How far the rules of chess correct the network, in plies looked ahead (RDTChess's FinishPlies):
  //   0  not at all
  //   1  mates in one when it can; when winning, no move that draws at once, that repeats, or after
  //   which the
  //      opponent can draw at once, if there is another
  //   2  also mates in two; walks into no mate in one that it can avoid; when losing, takes a draw
  //   there is
  int finish_plies = 1;
  std::uint64_t seed = 1;
};

// Plays by one forward pass. Lines: the move played, then the likeliest; `p` is the network's
// probability.
std::unique_ptr<Player> policy_player(std::unique_ptr<nn::Evaluator> evaluator,
                                      const PolicyOptions& options);

// What FinishPlies makes of each of `legal` (never empty), given the network's value for the side
// to move: larger is better, and only the moves of the largest rank are to be played.
std::vector<int> finish_ranks(const Game& game, const MoveList& legal, double value,
                              int finish_plies);

}  // namespace tahl::search
