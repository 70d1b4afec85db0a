// The rows of one work item, for the instruction set that is being compiled: their queries, and
// their states while a split is in progress, in the workspace and merged.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_ITEM_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_ITEM_ROWS_INL_H_
#undef QUIRE_ATTENTION_ITEM_ROWS_INL_H_
#else
#define QUIRE_ATTENTION_ITEM_ROWS_INL_H_
#endif

#include "attention/plan.h"
#include "attention/scratch.h"
#include "attention/state-inl.h"
#include "attention/tile-inl.h"
#include "base/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// A query row is a pair (row of the item, head of the group); at() says where its values lie.
class ItemRows {
 public:
  ItemRows(const AttentionPlan& plan, const AttentionItem& item, float* scratch)
      : plan_(plan),
        shape_(plan.shape()),
        item_(item),
        rows_(plan.rows().data() + item.first_row),
        group_(shape_.group_size()),
        num_query_rows_(item.num_rows * group_),
        at_(shape_, num_query_rows_),
        scratch_(scratch) {
    first_position_ = last_position_ = rows_[0].position;
    for (uint32_t row = 1; row < item.num_rows; ++row) {
      const uint32_t position = rows_[row].position;
      if (position < first_position_) first_position_ = position;
      if (position > last_position_) last_position_ = position;
    }
  }

  uint32_t num_query_rows() const { return num_query_rows_; }
  const ScratchLayout& at() const { return at_; }
  uint32_t PositionOf(uint32_t row) const { return rows_[row].position; }
  // The least and the greatest of all rows.
  uint32_t first_position() const { return first_position_; }
  uint32_t last_position() const { return last_position_; }

  // Query rows [start, end), scaled so that softmax is in base 2.
  void PrepareQueries(const float* q, uint32_t start, uint32_t end) {
    const F32x16 factor = Set16(shape_.scale * 1.44269504f);  // log2(e)
    const size_t head_dim = shape_.layout.head_dim_k;
    for (uint32_t a = start; a < end; ++a) {
      const float* from = q + RowAndHead(a) * head_dim;
      float* to = scratch_ + at_.q + a * at_.q_stride;
      size_t d = 0;
      for (; d + 16 <= head_dim; d += 16) Store16(Mul16(Load16(from + d), factor), to + d);
      if (d == head_dim) continue;
      alignas(64) float rest[16] = {};
      for (size_t i = 0; d + i < head_dim; ++i) rest[i] = from[d + i];
      Store16(Mul16(Load16(rest), factor), to + d);
    }
  }

  // All rows have seen nothing of the split. Says nothing of o.
  void StartSplit() {
    for (uint32_t a = 0; a < num_query_rows_; ++a) Start(a);
  }
  void ClearValues(uint32_t start, uint32_t end) {
    float* o = scratch_ + at_.o;
    for (size_t i = start * at_.o_stride; i < end * at_.o_stride; i += 16) Store16(Zero16(), o + i);
  }

  // The states of `split` go to the workspace, and come back from there bit for bit.
  void SaveSplit(uint32_t split, float* workspace) const {
    for (uint32_t a = 0; a < num_query_rows_; ++a) {
      if (!Sees(a / group_, split)) continue;
      float* state = StateOf(a, split, workspace);
      const float* o = scratch_ + at_.o + a * at_.o_stride;
      state[0] = scratch_[at_.max + a];
      Store16(Load16(scratch_ + at_.sums + size_t{a} * 16), state + 16);
      for (size_t i = 0; i < at_.o_stride; i += 16) Store16(Load16(o + i), state + 32 + i);
    }
  }
  void ResumeSplit(uint32_t split, float* workspace) {
    for (uint32_t a = 0; a < num_query_rows_; ++a) {
      if (!Sees(a / group_, split)) {
        Start(a);
        ClearValues(a, a + 1);
        continue;
      }
      const float* state = StateOf(a, split, workspace);
      float* o = scratch_ + at_.o + a * at_.o_stride;
      scratch_[at_.max + a] = state[0];
      Store16(Load16(state + 16), scratch_ + at_.sums + size_t{a} * 16);
      for (size_t i = 0; i < at_.o_stride; i += 16) Store16(Load16(state + 32 + i), o + i);
    }
  }

  // What is merged begins as the states of the splits before `split`, if any; the split in progress
  // joins those before it.
  void StartMerged(uint32_t split, float* workspace) {
    for (uint32_t a = 0; a < num_query_rows_; ++a) {
      scratch_[at_.merged_sum + a] = 0.0f;
      const uint32_t first = FirstSplit(a / group_);
      for (uint32_t s = first; item_.after != AttentionItem::kNone && s < split; ++s) {
        const float* state = StateOf(a, s, workspace);
        MergeState(state[0], SumLanes16(Load16(state + 16)), state + 32, at_.o_stride, MergedOf(a));
      }
    }
  }
  void MergeSplit() {
    for (size_t a = 0; a < num_query_rows_; ++a)
      MergeState(scratch_[at_.max + a], SumOf(a), scratch_ + at_.o + a * at_.o_stride, at_.o_stride,
                 MergedOf(a));
  }

  void WriteMerged(float* out) {
    const size_t head_dim = shape_.layout.head_dim_v;
    for (uint32_t a = 0; a < num_query_rows_; ++a)
      WriteOutput(MergedOf(a), head_dim, out + RowAndHead(a) * head_dim);
  }
  // What merging one split into the empty state gives.
  void WriteOnlySplit(float* out) {
    const size_t head_dim = shape_.layout.head_dim_v;
    for (uint32_t a = 0; a < num_query_rows_; ++a) {
      float max = 0.0f, sum = SumOf(a), sum_low = 0.0f;
      WriteOutput({max, sum, sum_low, scratch_ + at_.o + a * at_.o_stride, nullptr}, head_dim,
                  out + RowAndHead(a) * head_dim);
    }
  }

 private:
  size_t RowAndHead(uint32_t query_row) const {
    return size_t{rows_[query_row / group_].row} * shape_.num_q_heads +
           size_t{item_.kv_head} * group_ + query_row % group_;
  }
  uint32_t FirstSplit(uint32_t row) const {
    return shape_.FirstKey(rows_[row].position) / kSplitTokens;
  }
  // A row has a state of each split that it sees.
  bool Sees(uint32_t row, uint32_t split) const {
    return split >= FirstSplit(row) && split <= rows_[row].position / kSplitTokens;
  }
  float* StateOf(uint32_t query_row, uint32_t split, float* workspace) const {
    const AttentionRow& row = rows_[query_row / group_];
    const size_t state = row.first_state - rows_[0].first_state +
                         size_t{split - FirstSplit(query_row / group_)} * group_ +
                         query_row % group_;
    return workspace + item_.workspace_offset + state * plan_.state_floats();
  }
  void Start(uint32_t query_row) {
    scratch_[at_.max + query_row] = kLowest;
    Store16(Zero16(), scratch_ + at_.sums + size_t{query_row} * 16);
  }
  float SumOf(size_t query_row) const {
    return SumLanes16(Load16(scratch_ + at_.sums + query_row * 16));
  }
  Merged MergedOf(size_t query_row) {
    return {scratch_[at_.merged_max + query_row], scratch_[at_.merged_sum + query_row],
            scratch_[at_.merged_sum_low + query_row],
            scratch_ + at_.merged_o + query_row * at_.o_stride,
            scratch_ + at_.merged_o_low + query_row * at_.o_stride};
  }

  const AttentionPlan& plan_;
  const AttentionShape& shape_;
  const AttentionItem& item_;
  const AttentionRow* const rows_;
  const uint32_t group_;
  const uint32_t num_query_rows_;
  const ScratchLayout at_;
  float* const scratch_;
  uint32_t first_position_;
  uint32_t last_position_;
};

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
