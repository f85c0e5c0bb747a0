#include "chess/perft.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
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
    const Key k = mixed(key, depth);
    const Entry& entry = entries_[k & (size_ - 1)];
    const std::uint64_t nodes = entry.nodes.load(std::memory_order_relaxed);
    if ((entry.check.load(std::memory_order_relaxed) ^ nodes) != k) return std::nullopt;
    return nodes;
  }
  void store(Key key, int depth, std::uint64_t nodes) {
    const Key k = mixed(key, depth);
    Entry& entry = entries_[k & (size_ - 1)];
    entry.check.store(k ^ nodes, std::memory_order_relaxed);
    entry.nodes.store(nodes, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> check{0}, nodes{0};
  };
  static Key mixed(Key key, int depth) {
    return key + static_cast<Key>(depth) * 0x9e3779b97f4a7c15ull;
  }
  std::size_t size_;
  std::unique_ptr<Entry[]> entries_;
};

struct Subtree {
  Position position;
  std::size_t root_move;
};

// One count, shared by its threads.
struct Counting {
  const PerftOptions& options;
  CountTable table;
  std::stop_token stop;
  std::atomic<bool> overflow{false};

  bool over() const { return overflow || stop.stop_requested(); }
  void add(std::uint64_t& sum, std::uint64_t nodes) {
    if (__builtin_add_overflow(sum, nodes, &sum)) overflow = true;
  }

  // Once over, what this returns means nothing.
  std::uint64_t count(const Position& position, int depth) {
    if (depth <= 1 || (table.empty() && depth <= 4))
      return options.sliders ? perft_with(*options.sliders, position, depth, options.leaves)
                             : perft(position, depth, options.leaves);
    if (over()) return 0;
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
      add(nodes, count(next, depth - 1));
    }
    if (!table.empty() && !over()) table.store(position.key(), depth, nodes);
    return nodes;
  }
};

// The positions `plies` down, or fewer once they are many, and the root move that leads to each.
std::vector<Subtree> subtrees(const Position& root, int& plies) {
  constexpr std::size_t kMany = 1000;
  std::vector<Subtree> found{{root, 0}};
  for (int ply = 0; ply < plies; ++ply) {
    if (found.size() > kMany) {
      plies = ply;
      break;
    }
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
  int plies = depth >= 7 ? 3 : depth >= 4 ? 2 : 1;
  const std::vector<Subtree> work = subtrees(position, plies);
  Counting counting{options, CountTable(options.hash_mb), stop};

  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::condition_variable finished;
  PerftProgress progress{0, work.size(), 0};
  const auto run = [&] {
    for (std::size_t i; !counting.over() && (i = next++) < work.size();) {
      const std::uint64_t nodes = counting.count(work[i].position, depth - plies);
      if (counting.over()) return;
      const std::lock_guard lock(mutex);
      result.below[work[i].root_move].second += nodes;
      counting.add(progress.nodes, nodes);
      if (++progress.done == work.size()) finished.notify_one();
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto wanted = static_cast<std::size_t>(std::max(1, options.threads));
    try {
      while (threads.size() < std::min(wanted, work.size())) threads.emplace_back(run);
    } catch (const std::system_error&) {
      if (threads.empty()) run();  // the system gives no more: with those there are
    }
    std::unique_lock lock(mutex);
    while (progress.done < work.size() && !counting.over()) {
      finished.wait_for(lock, std::chrono::milliseconds(100),
                        [&] { return progress.done == work.size() || counting.over(); });
      if (report) report(progress);
    }
  }
  result.nodes = progress.nodes;
  result.overflow = counting.overflow;
  result.complete = progress.done == work.size() && !result.overflow;
  return result;
}

}  // namespace tahl
