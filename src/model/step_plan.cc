#include "model/step_plan.h"

#include <algorithm>
#include <atomic>

#include "base/check.h"

namespace quire {

void GroupPlan::Build(std::span<const SequenceRows> sequences, int num_threads) {
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

int GroupPlan::FinishPart(uint32_t item) {
  const int index = merge_of_item_[item];
  if (index < 0) return -1;
  Merge& merge = merges_[static_cast<size_t>(index)];
  const std::atomic_ref<uint32_t> num_done(merge.num_done);
  if (num_done.fetch_add(1, std::memory_order_acq_rel) + 1 < merge.num_parts) return -1;
  num_done.store(0, std::memory_order_relaxed);  // for the next layer, behind a barrier
  return index;
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
                                       .rule = forms.rule});
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
