// AttentionKernels: the functions that write and read KV pages, for one instruction set. Every set
// gives the same bits (base/vector-inl.h), as long as q, K and V are finite.
//
// In a step, for each layer: append all new K and V of the layer; then run_item for every item of
// the plan, on any threads, in any order in which an item starts after those it waits for; and
// merge_item for each merge item, once its parts are done. attention/plan_progress.h knows when.
//
// A page is read once per KV head for the whole query group; in prefill once per item, that is for
// a tile of up to 192 query rows; where sequences share it, once for the rows of all of them. A
// sealed page is decoded each time that it is read. What lies in a page beyond a sequence's length
// is never part of a sum: it may hold NaN.
//
// Reference: attention/reference.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/plan.h"
#include "base/instruction_set.h"
#include "base/kv_view.h"
#include "codec/kv_codec.h"

namespace quire {

// What an item did. A test adds them up and proves that no page is read twice.
struct AttentionCounters {
  uint64_t chunks_read =
      0;  // (page, KV head) pairs walked; a page that two splits share counts twice
};

struct AppendResult {
  bool non_finite = false;     // a NaN or infinity in k or v: fail this request
  uint64_t num_saturated = 0;  // finite values beyond the codec's range, stored as +-65,504
};

struct AttentionKernels {
  // Attends the query rows of one item over its keys.
  //   q          [num_rows, num_q_heads, head_dim_k]  f32   read, the item's rows and heads
  //   out        [num_rows, num_q_heads, head_dim_v]  f32   written, unless the item is partial
  //   workspace  [plan.workspace_floats()]   written, if the item is partial; read, if it resumes
  //   scratch    [plan.scratch_floats()]     this worker's own; what it held is lost
  // num_rows counts all rows of the step: SequenceRows::first_row is an index into it. A row
  // without a visible key gives 0. Errors: none; the plan has checked everything.
  AttentionCounters (*run_item)(const AttentionPlan& plan, uint32_t item, uint32_t layer,
                                const float* q, float* out, float* workspace, float* scratch);

  // Joins the states of one merge item, in position order, and writes its rows of `out`.
  void (*merge_item)(const AttentionPlan& plan, uint32_t merge_item, const float* workspace,
                     float* out, float* scratch);

  // Writes the K and V of tokens [first_position, first_position + num_rows) of one layer and KV
  // head into their slots. Touches no other slot. Calls for other heads or sequences may run at the
  // same time.
  //   k  [num_rows, head_dim_k]  f32, rows k_stride floats apart; v alike
  // Values that do not fit are stored in a defined form (docs/formats.md) and reported.
  AppendResult (*append)(const KvLayout& layout, KvCodec k_codec, KvCodec v_codec, uint32_t layer,
                         uint32_t kv_head, const KvView& kv, uint32_t first_position,
                         uint32_t num_rows, const float* k, size_t k_stride, const float* v,
                         size_t v_stride);
};

// The table for one set. Requires: this machine has it (base/instruction_set.h).
const AttentionKernels& GetAttentionKernels(InstructionSet set);

}  // namespace quire
