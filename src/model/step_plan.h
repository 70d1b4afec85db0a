// StepPlan: the rows of one step of the forward pass, the items of attention made of them, and the
// pages that the step fills.
//
// Layers that see the same keys share one AttentionPlan: there is one for each layer group, so
// items of windowed layers skip the pages that no row of theirs sees.
//
// Not here: what is computed (forward.cc); how rows become items (attention/plan.h).
//
// Threading: Build by one thread; afterwards any number may read, and call ForEachFilled. Build
// allocates nothing once it has seen its largest step.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "attention/plan.h"
#include "attention/plan_progress.h"
#include "base/ids.h"
#include "model/forward.h"
#include "model/layer_groups.h"
#include "model/shape.h"

namespace quire {

// The attention of the layers of one group.
class GroupPlan {
 public:
  GroupPlan(const AttentionShape& shape, Cascade cascade) : shape_(shape), cascade_(cascade) {}

  void Build(std::span<const SequenceRows> sequences, int num_threads);
  const AttentionShape& shape() const { return shape_; }
  const AttentionPlan& plan() const { return plan_; }
  PlanProgress& progress() { return progress_; }

 private:
  AttentionShape shape_;
  Cascade cascade_;
  AttentionPlan plan_;
  PlanProgress progress_;
};

class StepPlan {
 public:
  // Some tokens of one sequence, whose K and V are appended together: of one tail (row_blocks.h).
  struct Append {
    uint32_t sequence;
    uint32_t row_offset;  // within the sequence's rows
    uint32_t num_rows;
  };
  struct Sequence {
    uint32_t first_row;
    uint32_t num_rows;
    uint32_t first_position;
    uint32_t first_append;  // the first position that is written
    uint32_t first_seal;    // pages before it are not sealed
    size_t first_fill;      // of the pages that it fills
  };

  StepPlan(const ModelShape& shape, const ForwardOptions& options, int num_threads);

  void Build(std::span<const ForwardSequence> sequences);

  int num_rows() const { return static_cast<int>(tokens_.size()); }
  TokenId token(int row) const { return tokens_[static_cast<size_t>(row)]; }
  uint32_t position(int row) const { return positions_[static_cast<size_t>(row)]; }
  std::span<const uint32_t> logit_rows() const { return logit_rows_; }  // rows, ascending
  std::span<const Sequence> sequences() const { return sequences_; }
  // Calls append(item) for what rows [begin, end) append.
  template <class Function>
  void ForEachAppend(int begin, int end, Function&& append) const {
    for (int row = begin; row < end;) {
      const Sequence& sequence = sequences_[sequence_of_row_[static_cast<size_t>(row)]];
      const auto offset = static_cast<uint32_t>(row) - sequence.first_row;
      const uint32_t num_rows =
          std::min(sequence.num_rows - offset, static_cast<uint32_t>(end - row));
      append(Append{sequence_of_row_[static_cast<size_t>(row)], offset, num_rows});
      row += static_cast<int>(num_rows);
    }
  }

  // Calls filled(page) for each page of the sequence whose last missing token of a layer was
  // appended by rows [append.row_offset, + num_rows): once a page and layer, if all that a layer
  // appends is told here.
  template <class Function>
  void ForEachFilled(const Append& append, Function&& filled);

  GroupPlan& of_layer(int layer) { return plans_[groups_.group_of_layer(layer)]; }
  // Also how many layers before this one have the same plan.
  uint32_t index_in_group(int layer) const { return groups_.index_in_group(layer); }
  const KvView& view(int layer, uint32_t sequence) const {
    return views_[groups_.group_of_layer(layer) * sequences_.size() + sequence];
  }

  // Of any layer.
  size_t workspace_floats() const;
  size_t scratch_floats() const;

 private:
  // A page that a sequence fills in this step.
  struct Fill {
    uint32_t num_missing = 0;  // tokens that the step appends
    uint32_t num_done = 0;     // atomic while a step runs
  };

  void AddFills(Sequence& sequence);

  const int num_threads_;
  const uint32_t page_size_;
  const LayerGroups groups_;
  std::deque<GroupPlan> plans_;  // of each group

  std::vector<TokenId> tokens_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> sequence_of_row_;
  std::vector<uint32_t> logit_rows_;
  std::vector<Sequence> sequences_;
  std::vector<KvView> views_;  // [groups][sequences]
  std::vector<Fill> fills_;
  std::vector<SequenceRows> rows_;  // of the group that is being planned
};

template <class Function>
void StepPlan::ForEachFilled(const Append& append, Function&& filled) {
  const Sequence& sequence = sequences_[append.sequence];
  const uint32_t end = sequence.first_position + append.row_offset + append.num_rows;
  uint32_t begin = std::max(sequence.first_position + append.row_offset, sequence.first_append);
  const uint32_t first_page = sequence.first_append / page_size_;
  const uint32_t end_page = (sequence.first_position + sequence.num_rows) / page_size_;
  for (; begin < end && begin / page_size_ < end_page;) {
    const uint32_t page = begin / page_size_;
    const uint32_t num_tokens = std::min(end, (page + 1) * page_size_) - begin;
    begin += num_tokens;
    Fill& fill = fills_[sequence.first_fill + page - first_page];
    const std::atomic_ref<uint32_t> num_done(fill.num_done);
    if (num_done.fetch_add(num_tokens, std::memory_order_acq_rel) + num_tokens < fill.num_missing)
      continue;
    num_done.store(0, std::memory_order_relaxed);  // for the next layer, behind a barrier
    filled(page);
  }
}

}  // namespace quire
