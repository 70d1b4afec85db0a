// AttentionPlan: turns the rows of one step into work items for the kernels of attention/kernels.h.
//
// The arithmetic of a row (one position and one query head) depends on its position, its keys and
// the shape, never on the plan:
//
//   - keys are cut at multiples of kSplitTokens absolute positions into splits;
//   - each split starts a fresh f32 state (m, d, o): the maximum, the sum of weights, the weighted
//     sum of values; it takes the split's pages in order and is rescaled once a page;
//   - the states of the splits merge in position order (FlashInfer's (m, d, o) with base 2), in
//   sums
//     that keep what each rounding lost.
//
// So decode, prefill tiles and any number of threads give the same bits, and the plan is free to
// choose: an item has some consecutive rows of one sequence for one KV head (with its whole query
// group) and walks all their splits, or some of them only; then it leaves each split's state in the
// workspace, and a merge item joins them in a second stage. It takes the second way when there are
// too few items for the threads, as long as the workspace has room.
//
// Not here: the bytes of q, k, v (kernels.h); who holds pages (cache/). One plan serves all layers
// of a layer group.
//
// Threading: Build by one thread; afterwards any number may read. Build allocates nothing once it
// has seen its largest step.
// Papers: Dao, FlashAttention-2, 2023; Ye et al., FlashInfer, 2025.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/shape.h"
#include "base/kv_view.h"

namespace quire {

// A part of the arithmetic: another number gives other bits.
inline constexpr uint32_t kSplitTokens = 1024;

// No plan's workspace is larger (64 MiB), however many threads and keys there are.
inline constexpr size_t kMaxWorkspaceFloats = size_t{1} << 24;

// Query rows of one sequence: row first_row + i (of q and out) has position first_position + i.
// Keys [0, first_position + num_rows) are in the pages already.
struct SequenceRows {
  KvView kv;
  uint32_t first_row = 0;
  uint32_t num_rows = 0;
  uint32_t first_position = 0;
};

// One call of AttentionKernels::run_item.
struct AttentionItem {
  uint32_t sequence = 0;  // index into AttentionPlan::sequences()
  uint32_t kv_head = 0;
  uint32_t row_offset = 0;  // first row within the sequence's rows
  uint32_t num_rows = 0;
  uint32_t first_split = 0;
  uint32_t num_splits = 0;
  bool is_partial = false;      // leaves states in the workspace, writes no output
  size_t workspace_offset = 0;  // of its first state, in floats
};

// One call of AttentionKernels::merge_item. The states of split s, row i and head g of the group
// lie at workspace_offset + ((s * num_rows + i) * group_size + g) * state_floats().
struct AttentionMergeItem {
  uint32_t sequence = 0;
  uint32_t kv_head = 0;
  uint32_t row_offset = 0;
  uint32_t num_rows = 0;
  uint32_t num_splits = 0;
  size_t workspace_offset = 0;
};

class AttentionPlan {
 public:
  // Requires (checked): num_q_heads a multiple of num_kv_heads; the layout's num_kv_heads; pages
  // for all keys. Rows of different sequences may stand anywhere, but never twice.
  void Build(const AttentionShape& shape, std::span<const SequenceRows> sequences, int num_threads);

  uint32_t num_items() const { return static_cast<uint32_t>(items_.size()); }
  // 0: the items write the output themselves and there is no second stage.
  uint32_t num_merge_items() const { return static_cast<uint32_t>(merge_items_.size()); }

  // Floats of the one workspace that all items share (states on their way to the merge stage, at
  // most kMaxWorkspaceFloats), and of the scratch that each worker brings. Both must start at a
  // multiple of 64 bytes.
  size_t workspace_floats() const { return workspace_floats_; }
  size_t scratch_floats() const { return scratch_floats_; }

  // A state in the workspace: [m, d, 14 unused | o, head_dim_v rounded up to 16]. d = 0 is the
  // empty state: no visible key; merging it changes nothing.
  size_t state_floats() const { return 16 + (size_t{shape_.layout.head_dim_v} + 15) / 16 * 16; }

  const AttentionShape& shape() const { return shape_; }
  std::span<const SequenceRows> sequences() const { return sequences_; }
  std::span<const AttentionItem> items() const { return items_; }
  std::span<const AttentionMergeItem> merge_items() const { return merge_items_; }
  // A worker that has taken an item probably takes the one this far behind it next (prefetch only).
  uint32_t items_in_flight() const { return items_in_flight_; }

 private:
  // Calls tile(sequence, row_offset, num_rows) for consecutive rows that items share.
  template <class Tile>
  void ForEachTile(Tile tile) const;
  void AddItems(uint32_t sequence, uint32_t kv_head, uint32_t row_offset, uint32_t num_rows,
                uint64_t most_splits);

  AttentionShape shape_;
  std::vector<SequenceRows> sequences_;
  std::vector<AttentionItem> items_;
  std::vector<AttentionMergeItem> merge_items_;
  size_t workspace_floats_ = 0;
  size_t scratch_floats_ = 0;
  uint32_t rows_per_item_ = 1;
  uint32_t items_in_flight_ = 1;
};

}  // namespace quire
