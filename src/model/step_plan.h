// StepPlan: the rows of one step of the forward pass, and the items of attention made of them.
//
// Layers that see the same keys share one AttentionPlan: there is one for each distinct window of
// the model's layers, so items of windowed layers skip the pages that no row of theirs sees.
//
// Not here: what is computed (forward.cc); how rows become items (attention/plan.h).
//
// Threading: Build by one thread; afterwards any number may read. Build allocates nothing once it
// has seen its largest step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/plan.h"
#include "attention/plan_progress.h"
#include "base/ids.h"
#include "model/forward.h"
#include "model/shape.h"

namespace quire {

// The attention of the layers with one window.
class WindowPlan {
 public:
  WindowPlan(const AttentionShape& shape, Cascade cascade) : shape_(shape), cascade_(cascade) {}

  void Build(std::span<const SequenceRows> sequences, int num_threads);
  const AttentionPlan& plan() const { return plan_; }
  PlanProgress& progress() { return progress_; }
  uint32_t window() const { return shape_.window; }

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
  WindowPlan& of_layer(int layer) { return windows_[layers_[static_cast<size_t>(layer)].window]; }
  // How many layers before this one have the same plan.
  uint32_t turn_of_layer(int layer) const { return layers_[static_cast<size_t>(layer)].turn; }

  // Of any layer.
  size_t workspace_floats() const;
  size_t scratch_floats() const;

 private:
  struct Layer {
    size_t window;  // index into windows_
    uint32_t turn;
  };

  const int num_threads_;
  std::vector<WindowPlan> windows_;
  std::vector<Layer> layers_;

  std::vector<TokenId> tokens_;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> sequence_of_row_;
  std::vector<uint32_t> logit_rows_;
  std::vector<SequenceRows> sequences_;
};

}  // namespace quire
