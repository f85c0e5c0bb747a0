#pragma once

#include <chrono>
#include <memory>

#include "nn/evaluator.h"

namespace tahl::nn {

struct BatchingOptions {
  std::size_t max_batch = 64;           // positions in one pass; a larger request goes alone
  int passes = 1;                       // at a time, each on a clone of the evaluator
  std::chrono::microseconds wait{500};  // at most, for others to join a pass
};

// Gathers what its clones are asked at the same time by several threads into passes of one
// evaluator. There is no thread behind it: the first to ask runs the pass for those who come while
// it waits, which it does only if threads that asked lately are not there yet, and for a moment.
// Whoever is alone never waits. Exceptions of the evaluator reach everyone in the pass.
//
// For a net whose pass costs less a position when there are more of them. The CPU's gains a tenth
// at most, and loses more by the waiting (docs/lab.md).
std::unique_ptr<Evaluator> with_batching(std::unique_ptr<Evaluator> evaluator,
                                         const BatchingOptions& options = {});

}  // namespace tahl::nn
