#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "chess/movegen.h"

namespace tahl {

// Counted: the last ply's moves are only counted. Made: each is written and played, its key kept.
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
  int hash_mb = 0;  // a table of counts by key and depth, shared by the threads; 0: none
};

struct PerftProgress {
  std::size_t done = 0, all = 0;  // subtrees two or three plies down
  std::uint64_t nodes = 0;        // so far
};

struct PerftResult {
  std::uint64_t nodes = 0;
  std::vector<std::pair<Move, std::uint64_t>> below;  // by the first move, in the generator's order
  bool complete = true;                               // false: stopped, and the counts are too low
};

// The same, on several threads, with a table, and stopped on request within one subtree's time.
// `report` is called from the calling thread, up to ten times a second.
PerftResult perft_tree(const Position& position, int depth, const PerftOptions& options,
                       const std::stop_token& stop = {},
                       const std::function<void(const PerftProgress&)>& report = {});

}  // namespace tahl
