#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "chess/movegen.h"

namespace tahl {

// Counted: the last ply's moves are only counted ("bulk counting"). Made: each is written and
// played, its key kept.
enum class Leaves : std::uint8_t { Counted, Made };

// Leaves of the tree of legal moves `depth` plies deep, through the fastest way there is.
std::uint64_t perft(const Position& position, int depth, Leaves leaves = Leaves::Counted);
// Through a chosen back end at every ply. Precondition: it is available.
std::uint64_t perft_with(SliderBackend backend, const Position& position, int depth,
                         Leaves leaves = Leaves::Counted);

struct PerftOptions {
  Leaves leaves = Leaves::Counted;
  std::optional<SliderBackend> sliders;  // none: the fastest
  int threads = 1;
  int hash_mb = 0;  // a table of counts by key and depth, of the next lower power of two; 0: none
};

struct PerftProgress {
  std::size_t done = 0, all = 0;  // subtrees one to three plies down
  std::uint64_t nodes = 0;        // so far
};

struct PerftResult {
  std::uint64_t nodes = 0;
  std::vector<std::pair<Move, std::uint64_t>> below;  // by the first move, in the generator's order
  bool complete = true;   // false: stopped, or overflow; the counts are then too low
  bool overflow = false;  // more than 64 bits can hold
};

// The same, on several threads, with a table, and stopped on request within one subtree's time.
// `report` is called from the calling thread, up to ten times a second. Throws std::bad_alloc where
// there is no memory for the table.
PerftResult perft_tree(const Position& position, int depth, const PerftOptions& options,
                       const std::stop_token& stop = {},
                       const std::function<void(const PerftProgress&)>& report = {});

}  // namespace tahl
