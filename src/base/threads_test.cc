#include "base/threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
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

// A worker comes to the barrier just as the other goes to sleep there, again and again: a wake-up
// that is lost hangs both. With a store that was only a release it took 100,000 to 5 million turns,
// so this sees such a fault in some runs, not in each.
TEST(ThreadTeam, NoWakeUpIsLostAtTheEdgeOfSleep) {
  using Clock = std::chrono::steady_clock;
  const auto end_of_test =
      Clock::now() + std::chrono::seconds(4);  // a busy machine makes few turns
  std::atomic<int> last_turn = 50'000, num_turns = 0;
  std::promise<void> done;
  std::thread watch([&, ended = done.get_future()] {
    for (int before = -1, now;
         ended.wait_for(std::chrono::seconds(30)) != std::future_status::ready; before = now) {
      now = num_turns;
      QUIRE_CHECK(now != before && "two workers have slept for 30 s");
    }
  });
  ThreadTeam team(2);
  team.Run([&](int worker) {
    std::minstd_rand random(1);
    for (int turn = 0; turn <= last_turn; ++turn) {
      // Await spins for 20 us, looks at the clock now and then, and yields some times.
      const auto end = Clock::now() + std::chrono::nanoseconds(20'000 + random() % 6'000);
      while (turn % 2 == worker && Clock::now() < end) {
      }
      // Told before the barrier, so that both end after the next turn.
      if (worker == 0 && Clock::now() > end_of_test)
        last_turn = std::min(last_turn.load(), turn + 1);
      team.Barrier();
      num_turns = turn;
    }
  });
  done.set_value();
  watch.join();
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
