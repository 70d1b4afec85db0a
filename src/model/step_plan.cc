#include "model/step_plan.h"

#include <algorithm>
#include <atomic>

namespace quire {

void WindowPlan::Build(std::span<const SequenceRows> sequences, int num_threads) {
  plan_.Build(shape_, sequences, num_threads);
  merges_.assign(plan_.num_merge_items(), {});
  merge_of_item_.assign(plan_.num_items(), -1);
  // The parts of a merge item follow each other, in the order of the merge items; its states begin
  // where those of its first part do.
  size_t num_begun = 0;  // merge items
  for (size_t i = 0; i < merge_of_item_.size(); ++i) {
    const AttentionItem& item = plan_.items()[i];
    if (!item.is_partial) continue;
    if (num_begun < merges_.size() &&
        plan_.merge_items()[num_begun].workspace_offset == item.workspace_offset)
      ++num_begun;
    merge_of_item_[i] = static_cast<int>(num_begun) - 1;
    ++merges_[num_begun - 1].num_parts;
  }
}

int WindowPlan::FinishPart(uint32_t item) {
  const int index = merge_of_item_[item];
  if (index < 0) return -1;
  Merge& merge = merges_[static_cast<size_t>(index)];
  const std::atomic_ref<uint32_t> num_done(merge.num_done);
  if (num_done.fetch_add(1, std::memory_order_acq_rel) + 1 < merge.num_parts) return -1;
  num_done.store(0, std::memory_order_relaxed);  // for the next layer, behind a barrier
  return index;
}

StepPlan::StepPlan(const ModelShape& shape, const ForwardOptions& options, int num_threads)
    : num_threads_(num_threads) {
  for (const LayerShape& layer : shape.layers) {
    const auto window = static_cast<uint32_t>(layer.window);
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const WindowPlan& w) { return w.window() == window; });
    plan_of_layer_.push_back(static_cast<size_t>(found - windows_.begin()));
    if (found != windows_.end()) continue;
    windows_.emplace_back(AttentionShape{.layout = options.kv_layout,
                                         .k_codec = options.kv_codec,
                                         .v_codec = options.kv_codec,
                                         .num_q_heads = static_cast<uint32_t>(shape.num_q_heads),
                                         .num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads),
                                         .scale = static_cast<float>(shape.attention_scale),
                                         .window = window});
  }
}

void StepPlan::Build(std::span<const ForwardSequence> sequences) {
  tokens_.clear();
  positions_.clear();
  logit_rows_.clear();
  sequences_.clear();
  sequence_of_row_.clear();
  for (const ForwardSequence& sequence : sequences) {
    const auto num_rows = static_cast<uint32_t>(sequence.tokens.size());
    const auto first_row = static_cast<uint32_t>(tokens_.size());
    const auto index = static_cast<uint32_t>(sequences_.size());
    sequences_.push_back({.kv = sequence.kv,
                          .first_row = first_row,
                          .num_rows = num_rows,
                          .first_position = sequence.first_position});
    for (uint32_t i = 0; i < num_rows; ++i) {
      tokens_.push_back(sequence.tokens[i]);
      positions_.push_back(sequence.first_position + i);
      sequence_of_row_.push_back(index);
      if (i + sequence.num_logits >= num_rows) logit_rows_.push_back(first_row + i);
    }
  }
  for (WindowPlan& window : windows_) window.Build(sequences_, num_threads_);
}

size_t StepPlan::workspace_floats() const {
  size_t most = 0;
  for (const WindowPlan& w : windows_) most = std::max(most, w.plan().workspace_floats());
  return most;
}

size_t StepPlan::scratch_floats() const {
  size_t most = 0;
  for (const WindowPlan& w : windows_) most = std::max(most, w.plan().scratch_floats());
  return most;
}

}  // namespace quire
