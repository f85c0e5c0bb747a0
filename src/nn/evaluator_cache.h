#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "nn/evaluator.h"

namespace tahl::nn {

// What names a question to a net: all that an encoding may read of the game's last `positions`
// (men, rights to castle, en passant square, side, halfmove clock, and whether the position had
// been on the board before) or of the whole game, and the legal moves in their order. Two hashes of
// 64 bits each, of the same input: that both agree by chance has the odds of 2^-128 a pair.
struct EvaluationKey {
  std::uint64_t place = 0, check = 0;
  bool operator==(const EvaluationKey&) const = default;
};
EvaluationKey evaluation_key(const Game& game, const MoveList& legal, int positions);

// Answers what it was asked lately from memory, and the rest by `evaluator`. All clones share the
// memory, at most about `bytes`, where the new replaces the old; values and logits are kept as they
// were, so the answers are the evaluator's own. (A net that rounds differently in batches of other
// sizes would do so here too; those of the CPU don't.)
std::unique_ptr<Evaluator> with_cache(std::unique_ptr<Evaluator> evaluator, std::size_t bytes);

}  // namespace tahl::nn
