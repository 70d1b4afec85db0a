#include "model/step_plan.h"

#include <algorithm>

#include "base/check.h"

namespace quire {

void GroupPlan::Build(std::span<const SequenceRows> sequences, int num_threads) {
  plan_.Build(shape_, sequences, num_threads, cascade_);
  progress_.Build(plan_);
}

StepPlan::StepPlan(const ModelShape& shape, const ForwardOptions& options, int num_threads)
    : num_threads_(num_threads),
      page_size_(options.kv.at(0).open.layout.page_size),
      groups_(shape) {
  QUIRE_CHECK(options.kv.size() == groups_.size());
  for (size_t group = 0; group < groups_.size(); ++group) {
    const KvForms& forms = options.kv[group];
    QUIRE_CHECK(forms.open.layout.num_layers == groups_[group].layers.size() &&
                forms.open.layout.page_size == page_size_);
    plans_.emplace_back(AttentionShape{.layout = forms.open.layout,
                                       .k_codec = forms.open.k_codec,
                                       .v_codec = forms.open.v_codec,
                                       .num_q_heads = static_cast<uint32_t>(shape.num_q_heads),
                                       .num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads),
                                       .scale = static_cast<float>(shape.attention_scale),
                                       .window = groups_[group].window,
                                       .sealed = forms.sealed,
                                       .rule = forms.rule},
                        options.cascade ? Cascade::kOn : Cascade::kOff);
  }
}

void StepPlan::Build(std::span<const ForwardSequence> sequences) {
  tokens_.clear();
  positions_.clear();
  logit_rows_.clear();
  sequences_.clear();
  sequence_of_row_.clear();
  fills_.clear();
  for (const ForwardSequence& sequence : sequences) {
    const auto num_rows = static_cast<uint32_t>(sequence.tokens.size());
    const auto first_row = static_cast<uint32_t>(tokens_.size());
    const auto index = static_cast<uint32_t>(sequences_.size());
    sequences_.push_back({.first_row = first_row,
                          .num_rows = num_rows,
                          .first_position = sequence.first_position,
                          .first_append = std::max(sequence.first_append, sequence.first_position),
                          .first_seal = sequence.first_seal,
                          .first_fill = 0});
    AddFills(sequences_.back());
    for (uint32_t i = 0; i < num_rows; ++i) {
      tokens_.push_back(sequence.tokens[i]);
      positions_.push_back(sequence.first_position + i);
      sequence_of_row_.push_back(index);
      if (i + sequence.num_logits >= num_rows) logit_rows_.push_back(first_row + i);
    }
  }
  views_.clear();
  for (size_t group = 0; group < groups_.size(); ++group) {
    rows_.clear();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      QUIRE_CHECK(sequences[i].kv.size() == groups_.size());
      views_.push_back(sequences[i].kv[group]);
      rows_.push_back({.kv = views_.back(),
                       .first_row = sequences_[i].first_row,
                       .num_rows = sequences_[i].num_rows,
                       .first_position = sequences_[i].first_position});
    }
    plans_[group].Build(rows_, num_threads_);
  }
}

void StepPlan::AddFills(Sequence& sequence) {
  sequence.first_fill = fills_.size();
  const uint32_t end_page = (sequence.first_position + sequence.num_rows) / page_size_;
  uint32_t begin = sequence.first_append;
  for (uint32_t page = begin / page_size_; page < end_page; ++page) {
    const uint32_t end = (page + 1) * page_size_;
    fills_.push_back({.num_missing = end - begin});
    begin = end;
  }
}

size_t StepPlan::workspace_floats() const {
  size_t most = 0;
  for (const GroupPlan& group : plans_) most = std::max(most, group.plan().workspace_floats());
  return most;
}

size_t StepPlan::scratch_floats() const {
  size_t most = 0;
  for (const GroupPlan& group : plans_) most = std::max(most, group.plan().scratch_floats());
  return most;
}

}  // namespace quire
