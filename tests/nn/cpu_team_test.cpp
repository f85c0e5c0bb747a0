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

TEST(CpuTeam, RestsAfterAStallAndComesBack) {
  CpuTeam team(2);
  EXPECT_EQ(team.ready(), 2);
  team.run([&](int member) {
    if (member == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    team.barrier();
  });
  EXPECT_EQ(team.ready(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(team.ready(), 2);
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
