#include "attention/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "attention/kernels.h"
#include "attention/test_pages.h"

namespace quire {
namespace {

// A plan looks at the addresses of pages only, and only if there are several sequences.
KvView ViewOf(const std::vector<std::byte*>& table) {
  return {.pages = table.data(), .num_pages = static_cast<uint32_t>(table.size())};
}
KvView ViewOf(const std::vector<std::byte*>& open, const std::vector<std::byte*>& sealed) {
  KvView view = ViewOf(open);
  view.sealed = sealed.data();
  return view;
}
const KvView kNoPages = {.num_pages = 1 << 16};

// Sequences with up to `most_rows` rows whose tables begin as that of an earlier one, for some
// pages, or do not.
struct RandomSequences {
  RandomSequences(std::mt19937& rng, uint32_t num, uint32_t most_rows, uint32_t page_size) {
    uint32_t first_row = 0;
    for (uint32_t i = 0; i < num; ++i) {
      const uint32_t num_rows = rng() % (most_rows + 1), first_position = rng() % 8000;
      auto& table = tables.emplace_back((first_position + num_rows) / page_size + 1);
      for (std::byte*& page : table) page = reinterpret_cast<std::byte*>(next_page += 64);
      if (i > 0 && rng() % 4 != 0) {
        const auto& from = tables[rng() % i];
        std::copy_n(from.begin(), rng() % (std::min(from.size(), table.size()) + 1), table.begin());
      }
      rows.push_back({{}, first_row, num_rows, first_position});
      first_row += num_rows;
    }
    for (const auto& table : tables)
      for (auto& form = sealed.emplace_back(table); std::byte * &page : form) page += 32;
    for (uint32_t i = 0; i < num; ++i) rows[i].kv = ViewOf(tables[i], sealed[i]);
  }
  std::vector<std::vector<std::byte*>> tables, sealed;
  std::vector<SequenceRows> rows;
  uintptr_t next_page = 0;
};

// What the items of one row and KV head do, in the plan's order.
using ItemsOfRow = std::vector<uint32_t>;

// The page of the first of an item's positions.
uint32_t QueryPage(const AttentionPlan& plan, const AttentionItem& item) {
  uint32_t position = UINT32_MAX;
  for (const AttentionRow& row : plan.rows().subspan(item.first_row, item.num_rows))
    position = std::min(position, row.position);
  return position / plan.shape().layout.page_size;
}

// Each key that a row sees belongs to exactly one item, which reads it from a page of the row's
// sequence, in the form in which the row reads it [attention.plan.1]. An item that begins inside a
// split goes on where another one ends, and waits for it.
void CheckRow(const AttentionPlan& plan, const SequenceRows& sequence, uint32_t position,
              const ItemsOfRow& items) {
  const AttentionShape& shape = plan.shape();
  std::vector<uint32_t> item_of_key(position + 1, AttentionItem::kNone);
  for (uint32_t index : items) {
    const AttentionItem& item = plan.items()[index];
    ASSERT_LT(item.first_key, item.end_key);
    if (item.run != AttentionItem::kNone) {
      // Its pages lie before the sequence's own.
      const uint32_t page_size = shape.layout.page_size;
      ASSERT_LE(item.end_key, sequence.first_position / page_size * page_size);
    }
    const KvView& kv = plan.sequences()[item.sequence].kv;
    const uint32_t query_page = QueryPage(plan, item);
    for (uint32_t key = std::max(item.first_key, shape.FirstKey(position));
         key < std::min(item.end_key, position + 1); ++key) {
      ASSERT_EQ(item_of_key[key], AttentionItem::kNone);
      item_of_key[key] = index;
      const uint32_t page = key / shape.layout.page_size;
      ASSERT_EQ(shape.PageFor(query_page, page, kv),
                shape.PageFor(position / shape.layout.page_size, page, sequence.kv));
    }
  }
  for (uint32_t key = shape.FirstKey(position); key <= position; ++key) {
    ASSERT_NE(item_of_key[key], AttentionItem::kNone);
    if (key == shape.FirstKey(position) || item_of_key[key] == item_of_key[key - 1]) continue;
    const AttentionItem& item = plan.items()[item_of_key[key]];
    const AttentionItem& before = plan.items()[item_of_key[key - 1]];
    ASSERT_EQ(item.first_key, key);
    ASSERT_EQ(item.resumes, key % kSplitTokens != 0);
    ASSERT_TRUE(before.is_partial);
    ASSERT_TRUE(item.after != AttentionItem::kNone || item.is_partial);
    if (before.run == AttentionItem::kNone || before.run == item.run) continue;
    ASSERT_EQ(item.after, before.run);
    ASSERT_LT(item_of_key[key - 1], item_of_key[key]);
  }
}

TEST(AttentionPlan, ItemsCoverEveryKeyOfEveryRowOnce) {
  std::mt19937 rng(1);
  uint32_t num_runs = 0, num_nested = 0;
  for (int round = 0; round < 150; ++round) {
    SCOPED_TRACE(round);
    const KvCodec codec = round % 4 < 2 ? KvCodec::kF16 : KvCodec::kKivi4;
    const AttentionShape shape =
        MakeTestShape({.page_size = round % 2 == 0 ? 64u : 48u,
                       .num_kv_heads = 1 + static_cast<uint32_t>(rng()) % 3,
                       .group_size = 1 + static_cast<uint32_t>(rng()) % 9,
                       .k_codec = codec,
                       .v_codec = codec,
                       .window = round % 3 == 0 ? 1 + static_cast<uint32_t>(rng()) % 3000 : 0,
                       .sink_pages = static_cast<uint32_t>(rng()) % 2,
                       .recent_pages = static_cast<uint32_t>(rng()) % 3});
    const RandomSequences sequences(rng, rng() % 12, round % 5 == 0 ? 200 : 3,
                                    shape.layout.page_size);
    AttentionPlan plan;
    plan.Build(shape, sequences.rows, 1 + static_cast<int>(rng() % 8));
    std::map<std::pair<uint32_t, uint32_t>, ItemsOfRow> items;  // of a KV head and row
    for (uint32_t i = 0; i < plan.num_items(); ++i) {
      const AttentionItem& item = plan.items()[i];
      for (const AttentionRow& row : plan.rows().subspan(item.first_row, item.num_rows))
        items[{item.kv_head, row.row}].push_back(i);
      num_nested += item.run != AttentionItem::kNone && item.after != AttentionItem::kNone;
    }
    num_runs += static_cast<uint32_t>(plan.run_items().size()) / shape.num_kv_heads;
    for (uint32_t head = 0; head < shape.num_kv_heads; ++head)
      for (const SequenceRows& s : sequences.rows)
        for (uint32_t i = 0; i < s.num_rows; ++i)
          CheckRow(plan, s, s.first_position + i, items[{head, s.first_row + i}]);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(num_runs, 100u);
  EXPECT_GT(num_nested, 100u);
}

// All items of a row and KV head place its states alike, and those of different rows and heads do
// not overlap.
TEST(AttentionPlan, StatesFillTheWorkspaceWithoutOverlap) {
  std::mt19937 rng(2);
  for (int round = 0; round < 50; ++round) {
    const AttentionShape shape =
        MakeTestShape({.num_kv_heads = 2,
                       .group_size = 3,
                       .window = round % 3 == 0 ? 1 + static_cast<uint32_t>(rng()) % 3000 : 0});
    const RandomSequences sequences(rng, 8, 3, 64);
    AttentionPlan plan;
    plan.Build(shape, sequences.rows, 4);
    std::map<std::pair<uint32_t, uint32_t>, size_t> offsets;  // of a KV head and row of the plan
    const auto place = [&](const auto& item) {
      for (uint32_t row = item.first_row; row < item.first_row + item.num_rows; ++row) {
        const size_t offset = item.workspace_offset + (plan.rows()[row].first_state -
                                                       plan.rows()[item.first_row].first_state) *
                                                          plan.state_floats();
        EXPECT_EQ(offsets.try_emplace({item.kv_head, row}, offset).first->second, offset);
      }
    };
    for (const AttentionItem& item : plan.items())
      if (item.is_partial || item.after != AttentionItem::kNone) place(item);
    for (const AttentionMergeItem& item : plan.merge_items()) place(item);
    std::vector<uint32_t> used(plan.workspace_floats() / plan.state_floats());
    for (const auto& [head_and_row, offset] : offsets) {
      const uint32_t position = plan.rows()[head_and_row.second].position;
      const uint32_t first_split = shape.FirstKey(position) / kSplitTokens;
      for (uint32_t i = 0; i < (position / kSplitTokens - first_split + 1) * 3; ++i)
        ++used[offset / plan.state_floats() + i];
    }
    EXPECT_EQ(used, std::vector<uint32_t>(used.size(), 1));
  }
}

// A long prefill on many threads: all states would be 1.2 GB.
TEST(AttentionPlan, TheWorkspaceIsBoundedAndTheRestOfTheItemsAreWhole) {
  const AttentionShape shape =
      MakeTestShape({.num_kv_heads = 8, .group_size = 4, .head_dim_k = 128, .head_dim_v = 128});
  const SequenceRows rows = {kNoPages, 0, 512, 128 * 1024};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 256);
  EXPECT_LE(plan.workspace_floats(), kMaxWorkspaceFloats);
  EXPECT_GT(plan.workspace_floats(), kMaxWorkspaceFloats / 2);
  uint64_t num_keys = 0, num_rows = 0, num_whole = 0;
  for (const AttentionItem& item : plan.items()) {
    for (const AttentionRow& row : plan.rows().subspan(item.first_row, item.num_rows))
      num_keys +=
          std::min(item.end_key, row.position + 1) - std::min(item.first_key, row.position + 1);
    num_rows += item.is_partial && item.first_key > 0 ? 0 : item.num_rows;
    num_whole += !item.is_partial;
  }
  EXPECT_EQ(num_keys, 8u * (512u * 128 * 1024 + 512 * 513 / 2));
  EXPECT_EQ(num_rows, 8u * 512u);
  EXPECT_GT(num_whole, 100u);
}

// 64 sequences of 64K tokens in common would leave 150 MB of states.
TEST(AttentionPlan, SequencesShareAsLongAsTheWorkspaceHasRoom) {
  const AttentionShape shape =
      MakeTestShape({.num_kv_heads = 8, .group_size = 4, .head_dim_k = 256, .head_dim_v = 256});
  std::vector<std::byte*> table(1025);
  for (size_t i = 0; i < table.size(); ++i) table[i] = reinterpret_cast<std::byte*>(64 * i + 64);
  std::vector<std::vector<std::byte*>> tables(64, table);
  std::vector<SequenceRows> sequences;
  for (uint32_t i = 0; i < 64; ++i) {
    tables[i].back() = reinterpret_cast<std::byte*>(64 * (2000 + i));
    sequences.push_back({ViewOf(tables[i]), i, 1, 65536});
  }
  AttentionPlan plan;
  plan.Build(shape, sequences, 2);
  EXPECT_LE(plan.workspace_floats(), kMaxWorkspaceFloats);
  uint32_t num_together = 0, num_alone = 0;
  for (const AttentionItem& item : plan.items()) {
    if (item.kv_head != 0 || item.end_key != 65537) continue;
    num_together += item.after != AttentionItem::kNone;
    num_alone += item.after == AttentionItem::kNone;
  }
  EXPECT_EQ(num_together, 28u);  // of 65 states for each of 32 heads
  EXPECT_EQ(num_alone, 64u - 28u);
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
  const SequenceRows rows = {kNoPages, 0, 1, 65535};
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
  const SequenceRows rows = {kNoPages, 0, 1, 4000};
  AttentionPlan plan;
  plan.Build(shape, {&rows, 1}, 2);
  ASSERT_EQ(plan.num_merge_items(), 1u);
  ASSERT_EQ(plan.merge_items()[0].num_parts, 4u);
  const size_t state = plan.state_floats();
  EXPECT_EQ(state, 64u);
  for (InstructionSet set : AvailableInstructionSets()) {
    const auto& kernels = GetAttentionKernels(set);
    std::vector<float> workspace(plan.workspace_floats(), 0.0f), scratch(plan.scratch_floats());
    for (size_t s = 0; s < 4; ++s) workspace[s * state] = -3.4e38f;
    std::vector<float> out(20, 7.0f);
    kernels.merge_item(plan, 0, workspace.data(), out.data(), scratch.data());
    EXPECT_EQ(out, std::vector<float>(20, 0.0f));
    workspace[2 * state] = -5.0f;  // one state of weight 4 and sum 10
    for (size_t i : {16, 18, 25, 31}) workspace[2 * state + i] = 1.0f;
    for (size_t i = 0; i < 20; ++i) workspace[2 * state + 32 + i] = 10.0f;
    kernels.merge_item(plan, 0, workspace.data(), out.data(), scratch.data());
    EXPECT_EQ(out, std::vector<float>(20, 2.5f));
  }
}

}  // namespace
}  // namespace quire
