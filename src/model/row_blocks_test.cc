#include "model/row_blocks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace quire {
namespace {

// Items and tails of several stages on several threads: each item of each block once, each row's
// tail once and after all items of its block, for any number of rows.
TEST(RowBlocks, TailsFollowTheItemsOfTheirBlock) {
  constexpr uint32_t kNumItems = 7;
  constexpr int kNumStages = 4;
  for (const int num_threads : {1, 3}) {
    ThreadTeam team(num_threads);
    RowBlocks blocks;
    for (const int num_rows : {1, 2, 8, 9, 95, 96, 97, 200, 512, 3}) {
      blocks.Build(num_rows);
      EXPECT_EQ(blocks.Begin(0), 0);
      EXPECT_EQ(blocks.End(blocks.num_blocks() - 1), num_rows);
      std::vector<std::atomic<uint32_t>> items(static_cast<size_t>(blocks.num_blocks()));
      std::vector<std::atomic<int>> tails(static_cast<size_t>(num_rows));
      std::atomic<int> too_early = 0;
      team.Run([&](int) {
        uint32_t items_before = 0;
        for (int stage = 0; stage < kNumStages; ++stage) {
          blocks.RunStage(
              team, kNumItems, items_before,
              [&](int block, uint32_t item) {
                EXPECT_LT(item, kNumItems);
                // Held up: others reach the tails before it ends.
                if (item == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
                ++items[static_cast<size_t>(block)];
              },
              [&](int begin, int end) {
                int block = 0;
                while (blocks.End(block) <= begin) ++block;
                EXPECT_LE(end, blocks.End(block));
                const auto want = kNumItems * static_cast<uint32_t>(stage + 1);
                too_early += items[static_cast<size_t>(block)] != want;
                for (int row = begin; row < end; ++row) ++tails[static_cast<size_t>(row)];
              });
        }
        EXPECT_EQ(items_before, kNumItems * kNumStages);
      });
      EXPECT_EQ(too_early, 0) << num_rows;
      for (const auto& count : tails) EXPECT_EQ(count, kNumStages) << num_rows;
      for (int block = 0; block < blocks.num_blocks(); ++block) {
        EXPECT_EQ(items[static_cast<size_t>(block)], kNumItems * kNumStages);
        EXPECT_LE(blocks.End(block) - blocks.Begin(block), RowBlocks::kMostRows);
      }
    }
  }
}

}  // namespace
}  // namespace quire
