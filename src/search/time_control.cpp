#include "search/time_control.h"

#include <algorithm>
#include <thread>

namespace tahl::search {
namespace {

using std::chrono::milliseconds;

constexpr double kLongest = 1e11;        // ms, three years: sums of it fit everywhere
constexpr double kMovesAhead = 20;       // without movestogo: a twentieth of the clock ...
constexpr double kIncrementShare = .75;  // ... and most of the increment
constexpr milliseconds kUnknownClock{1000};

double in_range(milliseconds t) { return std::clamp(static_cast<double>(t.count()), 0., kLongest); }
milliseconds whole(double ms) { return milliseconds(static_cast<std::int64_t>(ms)); }

}  // namespace

std::optional<TimeBudget> time_budget(const Limits& limits, Color side) {
  if (limits.infinite) return std::nullopt;
  const double overhead = in_range(limits.move_overhead);
  if (limits.movetime) {
    const double time = in_range(*limits.movetime);
    const milliseconds budget = whole(time - std::min(overhead, time / 2));
    return TimeBudget{budget, budget};
  }
  const auto& clock = limits.time[static_cast<std::size_t>(index(side))];
  if (!clock) {
    const bool plays_by_clock = limits.time[static_cast<std::size_t>(index(~side))] ||
                                limits.increment[0].count() > 0 || limits.increment[1].count() > 0;
    if (!plays_by_clock) return std::nullopt;
    return TimeBudget{kUnknownClock, kUnknownClock};
  }
  const double usable = std::max(0., in_range(*clock) - overhead);
  const double increment = in_range(limits.increment[static_cast<std::size_t>(index(side))]);
  const bool counts_moves = limits.moves_to_go && *limits.moves_to_go > 0;
  const double moves = counts_moves ? std::min<double>(*limits.moves_to_go, 50) : kMovesAhead;
  const double most = moves == 1 ? usable : .6 * usable;  // leave something for the moves to come
  const double target = std::min(most, usable / moves + kIncrementShare * increment);
  return TimeBudget{whole(target), whole(std::min(most, 3 * target))};
}

SearchClock::SearchClock(const Limits& limits, Color side)
    : limits_(limits), budget_(time_budget(limits, side)) {
  if (!limits.ponder) running_since_ = begin_;
}

milliseconds SearchClock::elapsed() const {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin_);
}

std::optional<milliseconds> SearchClock::counted() {
  if (!running_since_) {
    if (!limits_.ponder_hit || !limits_.ponder_hit()) return std::nullopt;
    running_since_ = Clock::now();
  }
  return std::chrono::duration_cast<milliseconds>(Clock::now() - *running_since_);
}

bool SearchClock::past_target() {
  const auto spent = counted();
  return budget_ && spent && *spent >= budget_->target;
}

bool SearchClock::past_hard() {
  const auto spent = counted();
  return budget_ && spent && *spent >= budget_->hard;
}

bool SearchClock::must_hold() { return limits_.infinite || !counted(); }

void SearchClock::hold(const std::stop_token& stop) {
  while (must_hold() && !stop.stop_requested()) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace tahl::search
