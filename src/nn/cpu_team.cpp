#include "nn/cpu_team.h"

#include <sched.h>

#include <algorithm>
#include <cassert>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tahl::nn {
namespace {

void pause() {
#ifdef __x86_64__
  _mm_pause();
#endif
}

// Pauses, some 15 nanoseconds each. A member that runs is at most some ten microseconds late.
constexpr int kSpins = 8000;
// A worker without a job spins for a shorter time, then gives way so often, then sleeps.
constexpr int kIdleSpins = 2000, kIdleYields = 200;

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  return processors;
}

}  // namespace

template <class Ready>
void CpuTeam::wait_until(const Ready& ready) {
  while (true) {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (ready()) return;
      pause();
    }
    sched_yield();
  }
}

CpuTeam::CpuTeam(int threads) : size_(threads), processors_(allowed_processors()) {
  assert(threads >= 1);
  for (int member = 1; member < threads; ++member)
    workers_.emplace_back([this, member] { work(member); });
}

CpuTeam::~CpuTeam() {
  stopping_ = true;
  started_.fetch_add(1, std::memory_order_release);
  started_.notify_all();
}

void CpuTeam::run(const std::function<void(int)>& job) {
  if (size_ > 1) {
    job_ = &job;
    caller_processor_.store(sched_getcpu(), std::memory_order_relaxed);
    working_.store(size_ - 1, std::memory_order_relaxed);
    started_.fetch_add(1, std::memory_order_release);
    started_.notify_all();
  }
  job(0);
  wait_until([&] { return working_.load(std::memory_order_acquire) == 0; });
}

void CpuTeam::barrier() {
  if (size_ == 1) return;
  const unsigned passed = passed_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.fetch_add(1, std::memory_order_release);
    return;
  }
  wait_until([&] { return passed_.load(std::memory_order_acquire) != passed; });
}

void CpuTeam::work(int member) {
  const FlushSubnormals flush;
  int processor = -1;
  unsigned seen = 0;
  while (true) {
    for (int wait = 0;
         wait < kIdleSpins + kIdleYields && started_.load(std::memory_order_acquire) == seen;
         ++wait) {
      if (wait < kIdleSpins)
        pause();
      else
        sched_yield();
    }
    started_.wait(seen, std::memory_order_acquire);
    seen = started_.load(std::memory_order_acquire);
    if (stopping_) return;
    move_away(member, processor);
    (*job_)(member);
    working_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

void CpuTeam::move_away(int member, int& processor) {
  const auto n = static_cast<int>(processors_.size());
  if (n < 2) return;
  const auto at = std::ranges::find(processors_, caller_processor_.load(std::memory_order_relaxed));
  if (at == processors_.end()) return;
  const int mine = processors_[static_cast<std::size_t>(
      (static_cast<int>(at - processors_.begin()) + member) % n)];
  if (mine == processor) return;
  processor = mine;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(mine, &set);
  sched_setaffinity(0, sizeof set, &set);  // if it fails, the scheduler chooses
}

void CpuPace::record(double time) {
  const bool now = together();
  double& m = mean(now);
  m = m < 0 ? time : m + (time - m) / 8;
  if (trials_ > 0) {
    if (--trials_ > 0) return;
    if (mean(!together_) < mean(together_)) {
      together_ = !together_;
      interval_ = kShortest;
    } else {
      interval_ = std::min(2 * interval_, kLongest);
    }
    until_trial_ = interval_;
  } else if (--until_trial_ <= 0) {
    trials_ = kTrials;
  } else if (mean(!now) >= 0 && m > 1.1 * mean(!now)) {
    together_ = !together_;
    until_trial_ = interval_ = kShortest;
  }
}

FlushSubnormals::FlushSubnormals() {
#ifdef __x86_64__
  before_ = _mm_getcsr();
  _mm_setcsr(before_ | 0x8040);
#endif
}

FlushSubnormals::~FlushSubnormals() {
#ifdef __x86_64__
  _mm_setcsr(before_);
#endif
}

}  // namespace tahl::nn
