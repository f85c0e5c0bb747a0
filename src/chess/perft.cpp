#include "chess/perft.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "chess/movegen_table.h"

namespace tahl {
namespace {

// Counts by position and depth, always replaced, without locks: a half-written entry does not fit
// its key (Hyatt and Mann, "A lockless transposition-table implementation", 2002).
class CountTable {
 public:
  explicit CountTable(int megabytes)
      : size_(megabytes == 0
                  ? 0
                  : std::bit_floor((static_cast<std::size_t>(megabytes) << 20) / sizeof(Entry))),
        entries_(std::make_unique<Entry[]>(size_)) {}

  bool empty() const { return size_ == 0; }
  std::optional<std::uint64_t> find(Key key, int depth) const {
    const Entry& entry = entries_[slot(key, depth)];
    const std::uint64_t data = entry.data.load(std::memory_order_relaxed);
    const bool fits = (entry.check.load(std::memory_order_relaxed) ^ data) == key &&
                      static_cast<int>(data & 255) == depth;
    return fits ? std::optional(data >> 8) : std::nullopt;
  }
  void store(Key key, int depth, std::uint64_t nodes) {
    const std::uint64_t data = nodes << 8 | static_cast<std::uint64_t>(depth);
    Entry& entry = entries_[slot(key, depth)];
    entry.check.store(key ^ data, std::memory_order_relaxed);
    entry.data.store(data, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> check{0}, data{0};
  };
  std::size_t slot(Key key, int depth) const {
    return (key + static_cast<Key>(depth) * 0x9e3779b97f4a7c15ull) & (size_ - 1);
  }
  std::size_t size_;
  std::unique_ptr<Entry[]> entries_;
};

struct Subtree {
  Position position;
  std::size_t root_move;
};

std::uint64_t count(const Position& position, int depth, const PerftOptions& options) {
  return options.sliders ? perft_with(*options.sliders, position, depth, options.leaves)
                         : perft(position, depth, options.leaves);
}

// Through the table, if there is one. What it returns once stopped means nothing.
std::uint64_t count_stoppably(const Position& position, int depth, const PerftOptions& options,
                              CountTable& table, const std::stop_token& stop) {
  if (depth <= 1 || (table.empty() && depth <= 5)) return count(position, depth, options);
  if (stop.stop_requested()) return 0;
  if (!table.empty()) {
    if (const auto known = table.find(position.key(), depth)) return *known;
  }
  MoveList moves;
  options.sliders ? legal_moves_with(*options.sliders, position, moves)
                  : legal_moves(position, moves);
  std::uint64_t nodes = 0;
  for (const Move m : moves) {
    Position next = position;
    next.make(m);
    nodes += count_stoppably(next, depth - 1, options, table, stop);
  }
  if (!table.empty() && !stop.stop_requested()) table.store(position.key(), depth, nodes);
  return nodes;
}

// All positions `plies` down, and the root move that leads to each.
std::vector<Subtree> subtrees(const Position& root, int plies) {
  std::vector<Subtree> found{{root, 0}};
  for (int ply = 0; ply < plies; ++ply) {
    std::vector<Subtree> next;
    for (const Subtree& parent : found) {
      std::size_t number = 0;
      for (const Move m : legal_moves(parent.position)) {
        next.push_back({parent.position, ply == 0 ? number : parent.root_move});
        next.back().position.make(m);
        ++number;
      }
    }
    found = std::move(next);
  }
  return found;
}

}  // namespace

PerftResult perft_tree(const Position& position, int depth, const PerftOptions& options,
                       const std::stop_token& stop,
                       const std::function<void(const PerftProgress&)>& report) {
  PerftResult result;
  if (depth <= 0) {
    result.nodes = 1;
    return result;
  }
  for (const Move m : legal_moves(position)) result.below.emplace_back(m, 0);
  const int plies = depth >= 7 ? 3 : depth >= 4 ? 2 : 1;
  const std::vector<Subtree> work = subtrees(position, plies);
  CountTable table(options.hash_mb);

  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  PerftProgress progress{0, work.size(), 0};
  const auto run = [&] {
    for (std::size_t i; !stop.stop_requested() && (i = next++) < work.size();) {
      const std::uint64_t nodes =
          count_stoppably(work[i].position, depth - plies, options, table, stop);
      if (stop.stop_requested()) return;
      const std::lock_guard lock(mutex);
      result.below[work[i].root_move].second += nodes;
      progress.nodes += nodes;
      if (++progress.done == work.size()) finished.notify_one();
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto wanted = static_cast<std::size_t>(std::max(1, options.threads));
    for (std::size_t i = 0; i < std::min(wanted, work.size()); ++i) threads.emplace_back(run);
    std::unique_lock lock(mutex);
    while (progress.done < work.size() && !stop.stop_requested()) {
      finished.wait_for(lock, std::chrono::milliseconds(100),
                        [&] { return progress.done == work.size() || stop.stop_requested(); });
      if (report) report(progress);
    }
  }
  result.nodes = progress.nodes;
  result.complete = progress.done == work.size();
  return result;
}

}  // namespace tahl
