// StepPlan: the rows of one step of the forward pass, and the items of attention made of them.
//
// Layers that see the same keys share one AttentionPlan: there is one for each distinct window of
// the model's layers, so items of windowed layers skip the pages that no row of theirs sees.
//
// Not here: what is computed (forward.cc); how rows become items (attention/plan.h).
//
// Threading: Build by one thread; afterwards any number may read, and call FinishPart. Build
// allocates nothing once it has seen its largest step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/plan.h"
#include "base/ids.h"
#include "model/forward.h"
#include "model/shape.h"

namespace quire {

// The attention of the layers with one window.
class WindowPlan {
 public:
  explicit WindowPlan(const AttentionShape& shape) : shape_(shape) {}

  void Build(std::span<const SequenceRows> sequences, int num_threads);
  const AttentionPlan& plan() const { return plan_; }
  uint32_t window() const { return shape_.window; }

  // The merge item that became ready by the end of this item; -1 if none did: the item wrote its
  // output itself, or other parts are not done. Each item of a layer calls it once.
  int FinishPart(uint32_t item);

 private:
  struct Merge {
    uint32_t num_parts = 0;
    uint32_t num_done = 0;  // atomic while a step runs
  };

  AttentionShape shape_;
  AttentionPlan plan_;
  std::vector<int> merge_of_item_;  // -1: none
  std::vector<Merge> merges_;
};

class StepPlan {
 public:
  // Some tokens of one sequence, whose K and V are appended together: of one tail (row_blocks.h).
  struct Append {
    uint32_t sequence;
    uint32_t row_offset;  // within the sequence's rows
    uint32_t num_rows;
  };

  StepPlan(const ModelShape& shape, const ForwardOptions& options, int num_threads);

  void Build(std::span<const ForwardSequence> sequences);

  int num_rows() const { return static_cast<int>(tokens_.size()); }
  TokenId token(int row) const { return tokens_[static_cast<size_t>(row)]; }
  uint32_t position(int row) const { return positions_[static_cast<size_t>(row)]; }
  std::span<const uint32_t> logit_rows() const { return logit_rows_; }  // rows, ascending
  std::span<const SequenceRows> sequences() const { return sequences_; }
  // Calls append(item) for what rows [begin, end) append.
  template <class Function>
  void ForEachAppend(int begin, int end, Function&& append) const {
    for (int row = begin; row < end;) {
      const SequenceRows& sequence = sequences_[sequence_of_row_[static_cast<size_t>(row)]];
      const auto offset = static_cast<uint32_t>(row) - sequence.first_row;
      const uint32_t num_rows =
          std::min(sequence.num_rows - offset, static_cast<uint32_t>(end - row));
      append(Append{sequence_of_row_[static_cast<size_t>(row)], offset, num_rows});
      row += static_cast<int>(num_rows);
    }
  }
  WindowPlan& of_layer(int layer) { return windows_[plan_of_layer_[static_cast<size_t>(layer)]]; }

  // Of any layer.
  size_t workspace_floats() const;
  size_t scratch_floats() const;

 private:
  const int num_threads_;
  std::vector<WindowPlan> windows_;
  std::vector<size_t> plan_of_layer_;  // index into windows_

  std::vector<TokenId> tokens_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> sequence_of_row_;
  std::vector<uint32_t> logit_rows_;
  std::vector<SequenceRows> sequences_;
};

}  // namespace quire
