#include "attention/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "attention/kernels.h"
#include "attention/test_pages.h"

namespace quire {
namespace {

// Each (KV head, row, split) that a row can see belongs to exactly one item.
TEST(AttentionPlan, ItemsCoverEveryRowAndSplitOnce) {
  std::mt19937 rng(1);
  for (int round = 0; round < 200; ++round) {
    const AttentionShape shape =
        MakeTestShape({.num_kv_heads = 1 + static_cast<uint32_t>(rng()) % 3,
                       .group_size = 1 + static_cast<uint32_t>(rng()) % 9,
                       .window = round % 3 == 0 ? 1 + static_cast<uint32_t>(rng()) % 3000 : 0});
    std::vector<SequenceRows> sequences;
    std::byte* const no_page = nullptr;
    uint32_t first_row = 0;
    for (uint32_t i = rng() % 6; i-- > 0;) {
      const uint32_t num_rows = rng() % 300, first_position = rng() % 8000;
      sequences.push_back(
          {{.pages = &no_page, .num_pages = 200}, first_row, num_rows, first_position});
      first_row += num_rows;
    }
    AttentionPlan plan;
    plan.Build(shape, sequences, 1 + static_cast<int>(rng() % 8));
    std::set<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> seen;
    for (const AttentionItem& item : plan.items())
      for (uint32_t i = 0; i < item.num_rows; ++i)
        for (uint32_t s = 0; s < item.num_splits; ++s)
          EXPECT_TRUE(
              seen.insert({item.kv_head, item.sequence, item.row_offset + i, item.first_split + s})
                  .second);
    for (uint32_t head = 0; head < shape.num_kv_heads; ++head)
      for (uint32_t i = 0; i < sequences.size(); ++i)
        for (uint32_t row = 0; row < sequences[i].num_rows; ++row) {
          const uint32_t position = sequences[i].first_position + row;
          for (uint32_t s = shape.FirstKey(position) / kSplitTokens; s <= position / kSplitTokens;
               ++s)
            EXPECT_TRUE(seen.count({head, i, row, s})) << "round " << round;
        }
  }
}

TEST(AttentionPlan, PartialStatesFillTheWorkspaceWithoutOverlap) {
  const AttentionShape shape = MakeTestShape({.num_kv_heads = 2, .group_size = 3});
  std::byte* const no_page = nullptr;
  const SequenceRows sequences[] = {{{.pages = &no_page, .num_pages = 200}, 0, 1, 9000},
                                    {{.pages = &no_page, .num_pages = 200}, 1, 4, 5000}};
  AttentionPlan plan;
  plan.Build(shape, sequences, 4);
  size_t next = 0;
  for (const AttentionItem& item : plan.items()) {
    ASSERT_TRUE(item.is_partial);
    EXPECT_EQ(item.workspace_offset, next);
    next += item.num_splits * item.num_rows * shape.group_size() * plan.state_floats();
  }
  EXPECT_EQ(plan.workspace_floats(), next);
  EXPECT_EQ(plan.num_merge_items(), 4u);
}

// A long prefill on many threads: all states would be 1.2 GB.
TEST(AttentionPlan, TheWorkspaceIsBoundedAndTheRestOfTheItemsAreWhole) {
  const AttentionShape shape =
      MakeTestShape({.num_kv_heads = 8, .group_size = 4, .head_dim_k = 128, .head_dim_v = 128});
  std::byte* const no_page = nullptr;
  const SequenceRows rows = {{.pages = &no_page, .num_pages = 3000}, 0, 512, 128 * 1024};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 256);
  EXPECT_LE(plan.workspace_floats(), kMaxWorkspaceFloats);
  EXPECT_GT(plan.workspace_floats(), kMaxWorkspaceFloats / 2);
  uint64_t num_states = 0, num_rows = 0, num_whole = 0;
  for (const AttentionItem& item : plan.items()) {
    num_states += uint64_t{item.num_splits} * item.num_rows;
    num_rows += item.is_partial && item.first_split > 0 ? 0 : item.num_rows;
    num_whole += !item.is_partial;
  }
  EXPECT_EQ(num_states, 8u * 512u * 129u);
  EXPECT_EQ(num_rows, 8u * 512u);
  EXPECT_GT(num_whole, 100u);
}

TEST(AttentionPlan, NothingToDoIsAnEmptyPlan) {
  AttentionPlan plan;
  plan.Build(MakeTestShape({}), {}, 2);
  EXPECT_EQ(plan.num_items(), 0u);
  const SequenceRows none = {{}, 0, 0, 0};
  plan.Build(MakeTestShape({}), {&none, 1}, 2);
  EXPECT_EQ(plan.num_items(), 0u);
  EXPECT_EQ(plan.num_merge_items(), 0u);
  EXPECT_EQ(plan.scratch_floats(), 0u);
}

TEST(AttentionPlan, OneLongSequenceFeedsAllThreads) {
  const AttentionShape shape = MakeTestShape({.num_kv_heads = 1, .group_size = 8});
  std::byte* const no_page = nullptr;
  const SequenceRows rows = {{.pages = &no_page, .num_pages = 1024}, 0, 1, 65535};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 8);
  EXPECT_EQ(plan.num_items(), 32u);
}

// Counters: a page is read once per KV head for the whole query group, however the plan cuts.
TEST(AttentionPlan, DecodeReadsEachPageOncePerKvHead) {
  for (uint32_t group : {1, 3, 8, 16})
    for (int num_threads : {1, 2, 8})
      for (InstructionSet set : AvailableInstructionSets()) {
        const AttentionShape shape = MakeTestShape(
            {.num_kv_heads = 2, .group_size = group, .head_dim_k = 16, .head_dim_v = 16});
        std::mt19937 rng(1);
        const uint32_t lengths[] = {3000, 17};
        TestPages pages(shape, lengths, rng);
        const SequenceRows rows[] = {{pages.view(0), 0, 1, 2999}, {pages.view(1), 1, 1, 16}};
        const auto run = RunAttention(GetAttentionKernels(set), shape, rows, 0,
                                      std::vector<float>(2 * 2 * group * 16), num_threads);
        EXPECT_EQ(run.counters.chunks_read, 2u * (47 + 1));
      }
}

TEST(AttentionPlan, PrefillReadsEachPageOncePerKvHeadAndRowTile) {
  const AttentionShape shape =
      MakeTestShape({.num_kv_heads = 2, .group_size = 3, .head_dim_k = 16, .head_dim_v = 16});
  std::mt19937 rng(1);
  const uint32_t length = 640;
  TestPages pages(shape, {&length, 1}, rng);
  const SequenceRows rows = {pages.view(0), 0, 64, 576};
  const auto run = RunAttention(GetAttentionKernels(AvailableInstructionSets().back()), shape,
                                {&rows, 1}, 0, std::vector<float>(64 * 6 * 16));
  EXPECT_EQ(run.num_items, 2u);  // 192 query rows each
  EXPECT_EQ(run.counters.chunks_read, 2u * 10);
}

TEST(AttentionPlan, WindowsSkipPagesBelow) {
  const AttentionShape shape = MakeTestShape({.head_dim_k = 16, .head_dim_v = 16, .window = 100});
  std::mt19937 rng(1);
  const uint32_t length = 5000;
  TestPages pages(shape, {&length, 1}, rng);
  const SequenceRows rows = {pages.view(0), 0, 1, 4999};  // keys 4900..4999: pages 76, 77, 78
  const auto run = RunAttention(GetAttentionKernels(AvailableInstructionSets().back()), shape,
                                {&rows, 1}, 0, std::vector<float>(16));
  EXPECT_EQ(run.counters.chunks_read, 3u);
}

// MAT-12: without a visible key the output is 0, and an empty state changes no other.
TEST(AttentionPlan, MergeOfEmptyStatesIsEmptyAndNeutral) {
  const AttentionShape shape = MakeTestShape({.head_dim_k = 16, .head_dim_v = 20});
  std::byte* const no_page = nullptr;
  const SequenceRows rows = {{.pages = &no_page, .num_pages = 200}, 0, 1, 4000};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 2);
  ASSERT_EQ(plan.num_merge_items(), 1u);
  ASSERT_EQ(plan.merge_items()[0].num_splits, 4u);
  const size_t state = plan.state_floats();
  EXPECT_EQ(state, 48u);
  for (InstructionSet set : AvailableInstructionSets()) {
    const auto& kernels = GetAttentionKernels(set);
    std::vector<float> workspace(plan.workspace_floats(), 0.0f), scratch(plan.scratch_floats());
    for (size_t s = 0; s < 4; ++s) workspace[s * state] = -3.4e38f;
    std::vector<float> out(20, 7.0f);
    kernels.merge_item(plan, 0, workspace.data(), out.data(), scratch.data());
    EXPECT_EQ(out, std::vector<float>(20, 0.0f));
    workspace[2 * state] = -5.0f;  // one state of weight 4 and sum 10
    workspace[2 * state + 1] = 4.0f;
    for (size_t i = 0; i < 20; ++i) workspace[2 * state + 16 + i] = 10.0f;
    kernels.merge_item(plan, 0, workspace.data(), out.data(), scratch.data());
    EXPECT_EQ(out, std::vector<float>(20, 2.5f));
  }
}

}  // namespace
}  // namespace quire
