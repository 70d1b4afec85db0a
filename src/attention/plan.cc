#include "attention/plan.h"

#include <algorithm>

#include "attention/scratch.h"
#include "base/check.h"

namespace quire {
namespace {

// Query rows of an item: enough that the page's bytes cost nothing beside the arithmetic, few
// enough that q and o of all rows stay in the L2 cache.
constexpr uint32_t kMaxItemQueryRows = 192;
constexpr uint32_t kMinItemQueryRows = 48;

// With this many equal items a thread, the last one to finish keeps the others waiting for less
// than a quarter of the stage.
constexpr uint64_t kItemsPerThread = 4;

struct SplitRange {
  uint32_t first;
  uint32_t num;
};

SplitRange SplitsOf(const AttentionShape& shape, const SequenceRows& rows, uint32_t row_offset,
                    uint32_t num_rows) {
  const uint32_t first_position = rows.first_position + row_offset;
  const uint32_t first = shape.FirstKey(first_position) / kSplitTokens;
  const uint32_t last = (first_position + num_rows - 1) / kSplitTokens;
  return {first, last - first + 1};
}

}  // namespace

void AttentionPlan::Build(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                          int num_threads) {
  QUIRE_CHECK(num_threads >= 1);
  QUIRE_CHECK(shape.num_kv_heads > 0 && shape.num_kv_heads == shape.layout.num_kv_heads);
  QUIRE_CHECK(shape.num_q_heads > 0 && shape.num_q_heads % shape.num_kv_heads == 0);
  shape_ = shape;
  sequences_.assign(sequences.begin(), sequences.end());
  items_.clear();
  merge_items_.clear();
  workspace_floats_ = 0;
  scratch_floats_ = 0;
  items_in_flight_ = static_cast<uint32_t>(num_threads);

  const uint32_t group = shape.group_size();
  const uint64_t wanted_items = num_threads == 1 ? 1 : num_threads * kItemsPerThread;
  uint64_t num_query_rows = 0;
  for (const SequenceRows& s : sequences_) {
    const uint64_t num_keys = uint64_t{s.first_position} + s.num_rows;
    QUIRE_CHECK(num_keys <= uint64_t{s.kv.num_pages} * shape.layout.page_size);
    num_query_rows += uint64_t{s.num_rows} * shape.num_q_heads;
  }
  const uint64_t item_query_rows =
      std::clamp<uint64_t>(num_query_rows / wanted_items, kMinItemQueryRows, kMaxItemQueryRows);
  rows_per_item_ = static_cast<uint32_t>(std::max<uint64_t>(1, item_query_rows / group));

  // One query row over one split is a unit of cost; an item may cost a wanted item's share.
  uint64_t cost = 0;
  ForEachTile([&](uint32_t sequence, uint32_t row_offset, uint32_t num_rows) {
    cost += uint64_t{num_rows} * SplitsOf(shape_, sequences_[sequence], row_offset, num_rows).num;
  });
  cost *= shape.num_kv_heads;
  uint32_t most_rows = 0;
  for (uint32_t kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head)
    ForEachTile([&](uint32_t sequence, uint32_t row_offset, uint32_t num_rows) {
      const uint64_t most_splits = num_threads == 1 ? UINT32_MAX : cost / wanted_items / num_rows;
      AddItems(sequence, kv_head, row_offset, num_rows, std::max<uint64_t>(1, most_splits));
      most_rows = std::max(most_rows, num_rows);
    });
  if (most_rows > 0)
    scratch_floats_ = ScratchLayout(shape_, uint64_t{most_rows} * group).num_floats;
}

template <class Tile>
void AttentionPlan::ForEachTile(Tile tile) const {
  for (uint32_t sequence = 0; sequence < sequences_.size(); ++sequence) {
    // The last rows have the most keys, so they come first.
    for (uint32_t end = sequences_[sequence].num_rows; end > 0;) {
      const uint32_t num_rows = std::min(end, rows_per_item_);
      end -= num_rows;
      tile(sequence, end, num_rows);
    }
  }
}

void AttentionPlan::AddItems(uint32_t sequence, uint32_t kv_head, uint32_t row_offset,
                             uint32_t num_rows, uint64_t most_splits) {
  const SplitRange splits = SplitsOf(shape_, sequences_[sequence], row_offset, num_rows);
  AttentionItem item = {.sequence = sequence,
                        .kv_head = kv_head,
                        .row_offset = row_offset,
                        .num_rows = num_rows,
                        .first_split = splits.first,
                        .num_splits = splits.num};
  const size_t split_floats = size_t{num_rows} * shape_.group_size() * state_floats();
  if (splits.num <= most_splits ||
      workspace_floats_ + splits.num * split_floats > kMaxWorkspaceFloats) {
    items_.push_back(item);
    return;
  }
  merge_items_.push_back({.sequence = sequence,
                          .kv_head = kv_head,
                          .row_offset = row_offset,
                          .num_rows = num_rows,
                          .num_splits = splits.num,
                          .workspace_offset = workspace_floats_});
  item.is_partial = true;
  for (uint32_t done = 0; done < splits.num; done += item.num_splits) {
    item.first_split = splits.first + done;
    item.num_splits = static_cast<uint32_t>(std::min<uint64_t>(most_splits, splits.num - done));
    item.workspace_offset = workspace_floats_;
    items_.push_back(item);
    workspace_floats_ += item.num_splits * split_floats;
  }
}

}  // namespace quire
