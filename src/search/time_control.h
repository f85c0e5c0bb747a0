#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "search/player.h"

namespace tahl::search {

// What one move may cost, counted from the start of the search or, when pondering, from ponderhit.
struct TimeBudget {
  std::chrono::milliseconds target{};  // the plan: begin nothing long after it
  std::chrono::milliseconds hard{};    // never beyond
};

// Nothing if time does not limit the search. Clocks of zero or less, or within the move overhead,
// give a budget of 0: move at once. A clock for the other side only means that ours is unknown: one
// second.
std::optional<TimeBudget> time_budget(const Limits& limits, Color side);

// Measures one search against its budget.
class SearchClock {
 public:
  SearchClock(const Limits& limits, Color side);

  std::chrono::milliseconds elapsed() const;  // since the search began
  bool past_target();
  bool past_hard();
  // True if no answer may be given yet, however little there is left to search: UCI's infinite and
  // ponder.
  bool must_hold();
  // Waits while must_hold(), or until `stop`.
  void hold(const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<std::chrono::milliseconds> counted();  // nothing while the clock does not run yet

  const Limits& limits_;
  std::optional<TimeBudget> budget_;
  Clock::time_point begin_ = Clock::now();
  std::optional<Clock::time_point> running_since_;
};

}  // namespace tahl::search
