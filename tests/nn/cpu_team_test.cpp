#include "nn/cpu_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tahl::nn {
namespace {

TEST(CpuTeam, EveryMemberDoesItsPartOfEveryJob) {
  for (const int size : {1, 2, 5}) {
    CpuTeam team(size);
    std::vector<int> done(static_cast<std::size_t>(size));
    for (int job = 0; job < 200; ++job)
      team.run([&](int member) { ++done[static_cast<std::size_t>(member)]; });
    for (const int jobs : done) EXPECT_EQ(jobs, 200);
  }
}

TEST(CpuTeam, NobodyPassesABarrierBeforeAllHaveCome) {
  constexpr int kSize = 4, kSteps = 300;
  CpuTeam team(kSize);
  std::atomic<int> came{0};
  std::atomic<int> early{0};
  team.run([&](int) {
    for (int step = 1; step <= kSteps; ++step) {
      ++came;
      team.barrier();
      if (came < step * kSize) ++early;
      team.barrier();
    }
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(came, kSteps * kSize);
}

// The share of jobs done together if the two ways take so long.
double share_together(CpuPace& pace, double alone, double together, int jobs) {
  int count = 0;
  for (int i = 0; i < jobs; ++i) {
    count += pace.together();
    pace.record(pace.together() ? together : alone);
  }
  return static_cast<double>(count) / jobs;
}

TEST(CpuPace, TakesTheFasterWayAndNoticesAChange) {
  CpuPace pace;
  EXPECT_GT(share_together(pace, 2, 1, 10'000), 0.98);
  EXPECT_LT(share_together(pace, 2, 5, 10'000), 0.05);
  EXPECT_GT(share_together(pace, 2, 1, 10'000), 0.7);  // it had stopped asking often
}

TEST(CpuPace, ForgetsASingleStall) {
  CpuPace pace;
  share_together(pace, 2, 1, 1000);
  while (!pace.together()) pace.record(2);
  pace.record(50);
  EXPECT_GT(share_together(pace, 2, 1, 2000), 0.7);
}

TEST(CpuTeam, SleepsBetweenJobsAndWakes) {
  CpuTeam team(3);
  std::atomic<int> done{0};
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    team.run([&](int) { ++done; });
  }
  EXPECT_EQ(done, 9);
}

}  // namespace
}  // namespace tahl::nn
