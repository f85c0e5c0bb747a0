#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace tahl::nn {

// Threads that do one thing together, again and again, for some hundred microseconds at a time.
// The caller is one of them. Waiting is spinning: a member that runs comes within microseconds; if
// one does not, the system has put it aside for a busy neighbour, and the others give way only
// after long, since who gives way at a barrier loses a time slice himself.
class CpuTeam {
 public:
  explicit CpuTeam(int threads);  // >= 1, the caller's included
  ~CpuTeam();
  CpuTeam(const CpuTeam&) = delete;
  CpuTeam& operator=(const CpuTeam&) = delete;

  int size() const { return size_; }
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
  template <class Ready>
  static void wait_until(const Ready& ready);

  const int size_;
  std::vector<int> processors_;  // that this process may use
  const std::function<void(int)>* job_ = nullptr;
  alignas(64) std::atomic<unsigned> started_{0};  // jobs; workers sleep on it
  std::atomic<bool> stopping_{false};
  std::atomic<int> caller_processor_{-1};
  alignas(64) std::atomic<int> working_{0};
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> passed_{0};  // barriers
  std::vector<std::jthread> workers_;
};

// Whether to work alone or together. On a quiet machine together is faster; with a busy neighbour,
// or where the cores are far apart, often not, and no rule knows in advance. So both are timed: the
// slower one gets a few trials now and then, ever more seldom while nothing changes.
class CpuPace {
 public:
  bool together() const { return (trials_ > 0) != together_; }
  // How long it took, as together() had said. Any unit, the same always.
  void record(double time);

 private:
  static constexpr int kTrials = 4, kShortest = 32, kLongest = 1024;
  double& mean(bool together) { return means_[together ? 1 : 0]; }

  bool together_ = true;
  int trials_ = 0;            // still to come
  int interval_ = kShortest;  // jobs between trials
  int until_trial_ = kShortest;
  double means_[2] = {-1, -1};  // of the last dozen; alone, together
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
