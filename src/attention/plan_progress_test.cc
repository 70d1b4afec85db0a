#include "attention/plan_progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>

#include "attention/test_pages.h"

namespace quire {
namespace {

// Tables with pages of their own, after some that all of them have.
class PlanProgressTest : public ::testing::Test {
 protected:
  void Build(std::span<const uint32_t> positions, uint32_t shared_pages, int num_threads) {
    tables_.assign(positions.size(), {});
    std::vector<SequenceRows> sequences;
    uintptr_t next_page = 64 * 1000;
    for (uint32_t i = 0; i < positions.size(); ++i) {
      for (uint32_t page = 0; page <= positions[i] / 64; ++page)
        tables_[i].push_back(
            reinterpret_cast<std::byte*>(page < shared_pages ? page* 64 + 64 : next_page += 64));
      sequences.push_back(
          {{.pages = tables_[i].data(), .num_pages = static_cast<uint32_t>(tables_[i].size())},
           i,
           1,
           positions[i]});
    }
    plan_.Build(MakeTestShape({.num_kv_heads = 2, .group_size = 2}), sequences, num_threads);
    progress_.Build(plan_);
  }

  std::vector<std::vector<std::byte*>> tables_;
  AttentionPlan plan_;
  PlanProgress progress_;
};

// In any order of the items, turn after turn.
TEST_F(PlanProgressTest, AMergeIsReadyWhenItsLastPartEnds) {
  const uint32_t positions[] = {9000, 20, 5000};
  Build(positions, 0, 8);
  ASSERT_GT(plan_.num_merge_items(), 1u);
  for (uint32_t turn = 0; turn < 3; ++turn) {
    std::map<uint32_t, uint32_t> parts, ready;  // of a merge item
    for (uint32_t i = 0; i < plan_.num_items(); ++i) {
      const uint32_t index = turn == 1 ? plan_.num_items() - 1 - i : i;
      const uint32_t own = plan_.items()[index].merge;
      const int merge = progress_.Finish(index, turn);
      if (own == AttentionItem::kNone) {
        EXPECT_EQ(merge, -1);
        continue;
      }
      const bool is_last = ++parts[own] == plan_.merge_items()[own].num_parts;
      EXPECT_EQ(merge, is_last ? static_cast<int>(own) : -1);
      if (is_last) ++ready[own];
    }
    EXPECT_EQ(ready.size(), plan_.num_merge_items());
  }
}

// Workers take the items from a counter; none starts before the run that it goes on with is done,
// and all end.
TEST_F(PlanProgressTest, ItemsStartWhenTheirRunIsDone) {
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < 20; ++i) positions.push_back(i == 0 ? 50000 : 3000 + i);
  for (const int num_threads : {1, 2, 4}) {
    Build(positions, 40, num_threads);
    ASSERT_EQ(plan_.run_items().size(), 2u);
    // What the items of runs leave; no atomics, so that ThreadSanitizer sees who waits for whom.
    std::vector<uint32_t> left(plan_.num_items());
    std::atomic<uint32_t> num_early = 0, num_waiting = 0, num_merged = 0;
    constexpr uint32_t kTurns = 200;
    ThreadTeam team(num_threads);
    team.Run([&](int) {
      for (uint32_t turn = 0; turn < kTurns; ++turn)
        team.ForEach(plan_.num_items(), [&](uint32_t i) {
          const AttentionItem& item = plan_.items()[i];
          progress_.WaitFor(i, turn);
          if (item.after != AttentionItem::kNone) {
            ++num_waiting;
            for (uint32_t j = 0; j < i; ++j)
              num_early += plan_.items()[j].run == item.after && left[j] != turn + 1;
          }
          if (item.run != AttentionItem::kNone) {
            // Long enough for another worker to come to the next items.
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
            while (std::chrono::steady_clock::now() < end) {
            }
            left[i] = turn + 1;
          }
          num_merged += progress_.Finish(i, turn) >= 0;
        });
    });
    EXPECT_EQ(num_early, 0u) << num_threads;
    EXPECT_GE(num_waiting, kTurns * 20u * 2);
    EXPECT_EQ(plan_.num_merge_items() > 0, num_threads > 1);
    EXPECT_EQ(num_merged, kTurns * plan_.num_merge_items());
  }
}

}  // namespace
}  // namespace quire
