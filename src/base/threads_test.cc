#include "base/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "base/machine.h"

namespace quire {
namespace {

TEST(ThreadTeam, EveryItemRunsOnceInEveryStage) {
  for (int num_threads : {1, 2, 3, 5}) {
    ThreadTeam team(num_threads);
    std::vector<std::atomic<int>> counts(1000);
    for (int job = 0; job < 20; ++job)
      team.Run([&](int) {
        for (int stage = 0; stage < 10; ++stage)
          team.ForEach(1000, [&](uint32_t i) { counts[i].fetch_add(1); });
      });
    for (auto& count : counts) EXPECT_EQ(count.load(), 200) << num_threads << " threads";
  }
}

TEST(ThreadTeam, AStageSeesWhatTheOneBeforeWrote) {
  ThreadTeam team(3);
  std::vector<int> values(64, 0);  // plain ints: the barrier alone makes this right (tsan looks)
  team.Run([&](int) {
    for (int stage = 1; stage <= 100; ++stage) {
      team.ForEach(64, [&](uint32_t i) { EXPECT_EQ(values[(i + 7) % 64], stage - 1); });
      team.ForEach(64, [&](uint32_t i) { values[i] = stage; });
    }
  });
  for (int value : values) EXPECT_EQ(value, 100);
}

TEST(ThreadTeam, EachWorkerRunsTheJob) {
  ThreadTeam team(4);
  std::vector<std::atomic<int>> ran(4);
  team.Run([&](int worker) { ran[worker].fetch_add(1); });
  for (auto& count : ran) EXPECT_EQ(count.load(), 1);
}

// Beside busy threads a team that spares workers leaves some out and takes them back: no item is
// lost or done twice on the way.
TEST(ThreadTeam, SparedWorkersMissNoJob) {
  ThreadTeam team(4, Workers::kSpared);
  std::atomic<bool> stop = false;
  std::vector<std::thread> neighbours;
  for (int i = 0; i < 4; ++i)
    neighbours.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  std::vector<std::atomic<int>> counts(64);
  std::atomic<int> fewest = 4;
  constexpr int kJobs = 300;
  for (int job = 0; job < kJobs; ++job) {
    std::atomic<int> workers = 0;
    team.Run([&](int) {
      ++workers;
      team.ForEach(64, [&](uint32_t i) {
        volatile uint32_t work = 0;
        for (uint32_t n = 0; n < 5000; ++n) work = work + n;
        ++counts[i];
      });
    });
    EXPECT_GE(workers, 1);
    fewest = std::min(fewest.load(), workers.load());
  }
  stop = true;
  for (std::thread& neighbour : neighbours) neighbour.join();
  for (auto& count : counts) EXPECT_EQ(count.load(), kJobs);
  if (UsableCores() <= 4) {
    EXPECT_LT(fewest, 4);
  }
}

TEST(ThreadTeam, NoItemsIsFine) {
  ThreadTeam team(2);
  team.Run([&](int) { team.ForEach(0, [](uint32_t) { FAIL(); }); });
}

TEST(Machine, HasACoreAndMemory) {
  EXPECT_GE(UsableCores(), 1);
  EXPECT_GT(ReadFreeMemory().bytes, 0u);
  EXPECT_FALSE(ReadFreeMemory().source.empty());
}

}  // namespace
}  // namespace quire
