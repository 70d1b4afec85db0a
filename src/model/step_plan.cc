#include "model/step_plan.h"

#include <algorithm>

namespace quire {

void WindowPlan::Build(std::span<const SequenceRows> sequences, int num_threads) {
  plan_.Build(shape_, sequences, num_threads, cascade_);
  progress_.Build(plan_);
}

StepPlan::StepPlan(const ModelShape& shape, const ForwardOptions& options, int num_threads)
    : num_threads_(num_threads) {
  for (const LayerShape& layer : shape.layers) {
    const auto window = static_cast<uint32_t>(layer.window);
    const auto found = std::find_if(windows_.begin(), windows_.end(),
                                    [&](const WindowPlan& w) { return w.window() == window; });
    const auto index = static_cast<size_t>(found - windows_.begin());
    const auto turn = std::count_if(layers_.begin(), layers_.end(),
                                    [&](const Layer& l) { return l.window == index; });
    layers_.push_back({index, static_cast<uint32_t>(turn)});
    if (found != windows_.end()) continue;
    windows_.emplace_back(AttentionShape{.layout = options.kv_layout,
                                         .k_codec = options.kv_codec,
                                         .v_codec = options.kv_codec,
                                         .num_q_heads = static_cast<uint32_t>(shape.num_q_heads),
                                         .num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads),
                                         .scale = static_cast<float>(shape.attention_scale),
                                         .window = window},
                          options.cascade ? Cascade::kOn : Cascade::kOff);
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
