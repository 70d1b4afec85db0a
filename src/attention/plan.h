// AttentionPlan: turns the rows of one step into work items for the kernels of attention/kernels.h.
//
// The arithmetic of a row (one position and one query head) depends on its position, its keys and
// the shape, never on the plan:
//
//   - keys are cut at multiples of kSplitTokens absolute positions into splits;
//   - each split starts a fresh f32 state (m, d, o): the maximum, the sum of weights, the weighted
//     sum of values; it takes the split's pages in order and is rescaled once a page;
//   - the states of the splits merge in position order (FlashInfer's (m, d, o) with base 2), in
//     sums that keep what each rounding lost.
//
// So decode, prefill tiles and any number of threads give the same bits, and the plan is free to
// choose which rows and keys make an item:
//
//   - some rows of one sequence for one KV head (with its whole query group), over all their keys;
//   - the same over some of their splits, when there are too few items for the threads and the
//     workspace has room: the item leaves each split's states in the workspace, and a merge item
//     joins them once all its parts are done;
//   - cascade: rows of several sequences over pages that they share (attention/shared_runs.h).
//     Each page is read once for all of them. The item leaves states; the rows' own items go on
//     with them at the page where the run ends, in the middle of a split as well, because a state
//     is kept as it is while a split is in progress (sums by lane).
//
// Where pages are sealed, all rows of an item read each of its pages in the same form: they have
// positions of one page, or the item is one of a run, whose pages lie before all readers' recent
// ones [attention.plan.1].
//
// Not here: the bytes of q, k, v (kernels.h); who holds pages (cache/). One plan serves all layers
// of a layer group.
//
// Threading: Build by one thread; afterwards any number may read. Build allocates nothing once it
// has seen a step of as many rows and one of as many sequences.
// Papers: Dao, FlashAttention-2, 2023; Ye et al., FlashInfer, 2025.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/sequence_rows.h"
#include "attention/shape.h"
#include "attention/shared_runs.h"

namespace quire {

// A part of the arithmetic: another number gives other bits.
inline constexpr uint32_t kSplitTokens = 1024;

// No plan's workspace is larger (64 MiB), however many threads and keys there are.
inline constexpr size_t kMaxWorkspaceFloats = size_t{1} << 24;

// A query row (a position of a sequence), in the plan's order.
struct AttentionRow {
  uint32_t row = 0;  // of q and out
  uint32_t position = 0;
  uint64_t first_state = 0;  // states of all rows before it: one a split and head of its group
};

// One call of AttentionKernels::run_item: rows [first_row, first_row + num_rows) of rows() over
// keys [first_key, end_key), as far as each row sees them.
struct AttentionItem {
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t sequence = 0;  // index into sequences(): whose table has the pages
  uint32_t kv_head = 0;
  uint32_t first_row = 0;
  uint32_t num_rows = 0;
  uint32_t first_key = 0;  // that a row sees; or the start of a split or of a page, if `resumes`
  uint32_t end_key = 0;
  bool is_partial = false;      // leaves states in the workspace, writes no output
  bool resumes = false;         // goes on with the states that its first split has in the workspace
  uint32_t merge = kNone;       // the merge item that it is a part of
  uint32_t run = kNone;         // the run that it is a part of: index into run_items()
  uint32_t after = kNone;       // may start when all items of this run are done; all are before it
  size_t workspace_offset = 0;  // of its first row's first state, in floats
};

// One call of AttentionKernels::merge_item, when its parts are done: rows of one sequence.
struct AttentionMergeItem {
  uint32_t kv_head = 0;
  uint32_t first_row = 0;
  uint32_t num_rows = 0;
  uint32_t num_parts = 0;
  size_t workspace_offset = 0;
};

// Whether sequences that have pages in common read them together. Changes no bit.
enum class Cascade { kOff, kOn };

class AttentionPlan {
 public:
  // Requires (checked): num_q_heads a multiple of num_kv_heads; the layout's num_kv_heads; pages
  // for all keys. Rows of different sequences may stand anywhere, but never twice.
  // With Cascade::kOn tables are read, and must be as [attention.shared_runs.1] has it.
  void Build(const AttentionShape& shape, std::span<const SequenceRows> sequences, int num_threads,
             Cascade cascade = Cascade::kOn);

  uint32_t num_items() const { return static_cast<uint32_t>(items_.size()); }
  // 0: the items write the output themselves and there is no second stage.
  uint32_t num_merge_items() const { return static_cast<uint32_t>(merge_items_.size()); }

  // Floats of the one workspace that all items share (states on their way to the merge stage, at
  // most kMaxWorkspaceFloats), and of the scratch that each worker brings. Both must start at a
  // multiple of 64 bytes.
  size_t workspace_floats() const { return workspace_floats_; }
  size_t scratch_floats() const { return scratch_floats_; }

  // A state in the workspace: [m, 15 unused | d in 16 lanes | o, head_dim_v rounded up to 16]. All
  // lanes 0 is the empty state: no visible key; merging it changes nothing. Row r's state of split
  // s and head g of the group lies in an item's workspace at state
  //   r.first_state - first_state of the item's first row
  //     + (s - first split that r sees) * group_size + g
  // from workspace_offset.
  size_t state_floats() const { return 32 + (size_t{shape_.layout.head_dim_v} + 15) / 16 * 16; }

  const AttentionShape& shape() const { return shape_; }
  std::span<const SequenceRows> sequences() const { return sequences_; }
  std::span<const AttentionRow> rows() const { return rows_; }
  std::span<const AttentionItem> items() const { return items_; }
  std::span<const AttentionMergeItem> merge_items() const { return merge_items_; }
  // Of each run and KV head, how many items it has; empty when nothing is shared.
  std::span<const uint32_t> run_items() const { return run_items_; }
  // A worker that has taken an item probably takes the one this far behind it next (prefetch only).
  uint32_t items_in_flight() const { return items_in_flight_; }

 private:
  // Rows of one sequence that an item may have.
  struct Tile {
    uint32_t sequence;
    uint32_t first_row;
    uint32_t num_rows;
    uint32_t first_key;  // keys before it belong to the run
    uint32_t run;        // SharedRuns::kNone
  };

  void ReserveMost();
  void AddRowsAndTiles();
  void AddRows(const SequenceRows& rows);
  // How many of a sequence's rows before `end`, counted back from there, read each page in the same
  // form: those of one page, where pages are sealed.
  uint32_t RowsOfOneForm(const SequenceRows& rows, uint32_t end) const;
  void AddRunItems(uint32_t run, uint64_t cost);
  void AddItems(const Tile& tile, uint32_t kv_head, uint64_t cost);
  // Adds `item` in parts of so many splits.
  void CutBySplits(AttentionItem item, uint64_t splits_per_item);

  uint64_t WantedItems() const;
  uint64_t SplitsPerItem(uint64_t cost, uint32_t num_rows) const;
  uint64_t Cost() const;
  uint64_t CostOf(const SharedRuns::Run& run) const;
  uint32_t FirstRowOf(const SharedRuns::Run& run) const { return reader_rows_[run.first_reader]; }
  uint32_t EndRowOf(const SharedRuns::Run& run) const {
    return reader_rows_[run.first_reader + run.num_readers];
  }
  uint32_t FirstKeyOf(const Tile& tile) const {
    return std::max(tile.first_key, shape_.FirstKey(rows_[tile.first_row].position));
  }
  uint32_t EndKeyOf(const Tile& tile) const {
    return rows_[tile.first_row + tile.num_rows - 1].position + 1;
  }
  // Of the states of a row that shares.
  size_t SharedOffset(uint32_t kv_head, uint32_t row) const {
    return (kv_head * num_shared_states_ + rows_[row].first_state) * state_floats();
  }

  AttentionShape shape_;
  uint32_t num_threads_ = 1;
  std::vector<SequenceRows> sequences_;
  std::vector<AttentionRow> rows_;  // those of the readers of shared_ first, in its order
  std::vector<AttentionItem> items_;
  std::vector<AttentionMergeItem> merge_items_;
  std::vector<uint32_t> run_items_;
  SharedRuns shared_;
  std::vector<uint32_t> reader_rows_;  // the first row of each reader, and the end
  std::vector<bool> is_reader_;        // of each sequence: of a run
  std::vector<Tile> tiles_;
  uint64_t num_states_ = 0;         // of all rows, for one KV head
  uint64_t num_shared_states_ = 0;  // of those that share
  size_t workspace_floats_ = 0;
  size_t scratch_floats_ = 0;
  uint32_t items_in_flight_ = 1;
};

}  // namespace quire
