// States of splits and how they join, for the instruction set that is being compiled.
//
// Included by kernels.cc once for each target. Not here: std:: functions (base/vector-inl.h).
#if defined(QUIRE_ATTENTION_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_ATTENTION_STATE_INL_H_
#undef QUIRE_ATTENTION_STATE_INL_H_
#else
#define QUIRE_ATTENTION_STATE_INL_H_
#endif

#include "attention/kernels.h"
#include "base/vector-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire {
namespace HWY_NAMESPACE {

// The splits so far: sum + sum_low and o + o_low are what plain sums would round away (two-sum), so
// that hundreds of splits cost no accuracy. A sum of 0 is the empty state.
struct Merged {
  float& max;
  float& sum;
  float& sum_low;
  float* o;
  float* o_low;
};

// a + b rounded; what the rounding lost is added to `low`.
HWY_INLINE F32x16 TwoSum16(F32x16 a, F32x16 b, F32x16& low) {
  const F32x16 sum = Add16(a, b);
  const F32x16 b_part = Sub16(sum, a);
  low = Add16(low, Add16(Sub16(a, Sub16(sum, b_part)), Sub16(b, b_part)));
  return sum;
}

// The state (max, sum, o) of the next split joins.
HWY_INLINE void MergeState(float max, float sum, const float* o, size_t num_floats, Merged to) {
  if (sum == 0.0f) return;
  if (to.sum == 0.0f) {
    to.max = max;
    to.sum = sum;
    to.sum_low = 0.0f;
    for (size_t i = 0; i < num_floats; i += 16) {
      Store16(Load16(o + i), to.o + i);
      Store16(Zero16(), to.o_low + i);
    }
    return;
  }
  const float top = max > to.max ? max : to.max;
  const F32x16 old_factor = Exp2x16(Set16(to.max - top));
  const F32x16 new_factor = Exp2x16(Set16(max - top));
  to.max = top;
  alignas(64) float lanes[16];
  F32x16 low = Mul16(Set16(to.sum_low), old_factor);
  Store16(TwoSum16(Mul16(Set16(to.sum), old_factor), Mul16(Set16(sum), new_factor), low), lanes);
  to.sum = lanes[0];
  Store16(low, lanes);
  to.sum_low = lanes[0];
  for (size_t i = 0; i < num_floats; i += 16) {
    low = Mul16(Load16(to.o_low + i), old_factor);
    Store16(TwoSum16(Mul16(Load16(to.o + i), old_factor), Mul16(Load16(o + i), new_factor), low),
            to.o + i);
    Store16(low, to.o_low + i);
  }
}

// out = o * (1 / sum); 0 for the empty state. Without o_low, those are zeros.
HWY_INLINE void WriteOutput(Merged from, size_t head_dim, float* out) {
  if (from.sum == 0.0f) {
    for (size_t i = 0; i < head_dim; ++i) out[i] = 0.0f;
    return;
  }
  const F32x16 inverse = Set16(1.0f / (from.sum + from.sum_low));
  for (size_t i = 0; i < head_dim; i += 16) {
    const F32x16 low = from.o_low == nullptr ? Zero16() : Load16(from.o_low + i);
    const F32x16 x = Mul16(Add16(Load16(from.o + i), low), inverse);
    if (i + 16 <= head_dim) {
      Store16(x, out + i);
      continue;
    }
    alignas(64) float rest[16];
    Store16(x, rest);
    for (size_t c = 0; i + c < head_dim; ++c) out[i + c] = rest[c];
  }
}

void MergeItem(const AttentionPlan& plan, uint32_t merge_item, const float* workspace, float* out,
               float* scratch) {
  const AttentionMergeItem& item = plan.merge_items()[merge_item];
  const AttentionShape& shape = plan.shape();
  const AttentionRow* rows = plan.rows().data() + item.first_row;
  const size_t group = shape.group_size(), head_dim = shape.layout.head_dim_v;
  const size_t state_floats = plan.state_floats(), o_floats = state_floats - 32;
  for (size_t i = 0; i < item.num_rows; ++i) {
    const size_t num_splits =
        rows[i].position / kSplitTokens - shape.FirstKey(rows[i].position) / kSplitTokens + 1;
    const float* states = workspace + item.workspace_offset +
                          (rows[i].first_state - rows[0].first_state) * state_floats;
    for (size_t g = 0; g < group; ++g) {
      float max = 0.0f, sum = 0.0f, sum_low = 0.0f;
      const Merged merged = {max, sum, sum_low, scratch, scratch + o_floats};
      for (size_t s = 0; s < num_splits; ++s) {
        const float* state = states + (s * group + g) * state_floats;
        MergeState(state[0], SumLanes16(Load16(state + 16)), state + 32, o_floats, merged);
      }
      const size_t row = size_t{rows[i].row} * shape.num_q_heads + item.kv_head * group + g;
      WriteOutput(merged, head_dim, out + row * head_dim);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace quire
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
