#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace tahl::nn {

// Threads that do one thing together, again and again, for some hundred microseconds at a time.
// The caller is one of them. Waiting is spinning: a member that runs comes within microseconds. If
// one does not, the system has put it aside for a busy neighbour, and who then gave way at each
// barrier would lose a time slice at each. So the others spin on, give way only after long, and the
// team rests: for a while the caller should work alone (ready()), until a trial goes well again.
class CpuTeam {
 public:
  explicit CpuTeam(int threads);  // >= 1, the caller's included
  ~CpuTeam();
  CpuTeam(const CpuTeam&) = delete;
  CpuTeam& operator=(const CpuTeam&) = delete;

  int size() const { return size_; }
  // How many members a job with barriers should count on: size(), or 1 while the team rests.
  int ready() const;
  // Runs job(0) here and job(1) ... job(size - 1) on the others; returns when all have returned.
  // One caller at a time.
  void run(const std::function<void(int member)>& job);
  // Within a job, by every member: returns when all have come so far.
  void barrier();

 private:
  void work(int member);
  // Keeps the workers on processors of their own: the scheduler likes to put a woken thread on the
  // waker's.
  void move_away(int member, int& processor);
  // False if it took so long that a member must have been put aside.
  template <class Ready>
  static bool wait_until(const Ready& ready);

  const int size_;
  std::vector<int> processors_;  // that this process may use
  const std::function<void(int)>* job_ = nullptr;
  alignas(64) std::atomic<unsigned> started_{0};  // jobs; workers sleep on it
  std::atomic<bool> stopping_{false};
  std::atomic<int> caller_processor_{-1};
  alignas(64) std::atomic<int> working_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> passed_{0};  // barriers
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kShortestRest{500}, kLongestRest{100'000};
  std::atomic<bool> stalled_{false};  // in this job
  Clock::time_point resting_until_{};
  std::chrono::microseconds rest_ = kShortestRest;  // after the next stall
  std::vector<std::jthread> workers_;
};

// While it lives, subnormal numbers count as zeros on this thread: they cost a hundred times as
// much and mean nothing here.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;

 private:
  unsigned before_ = 0;
};

}  // namespace tahl::nn
