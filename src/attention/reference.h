// The plain double-precision reference of attention/kernels.h: one softmax over all visible keys,
// read from the pages one value at a time. For tests and evaluation, not for speed.
#pragma once

#include <cstdint>
#include <span>

#include "attention/plan.h"

namespace quire {

// One value of a token's K or V as a row of page `query_page` reads it.
float ReferenceK(const AttentionShape& shape, const KvView& kv, uint32_t layer, uint32_t kv_head,
                 uint32_t query_page, uint32_t position, uint32_t channel);
float ReferenceV(const AttentionShape& shape, const KvView& kv, uint32_t layer, uint32_t kv_head,
                 uint32_t query_page, uint32_t position, uint32_t channel);

// Attends all rows of all sequences.
//   q    [num_rows, num_q_heads, head_dim_k]  f32   read
//   out  [num_rows, num_q_heads, head_dim_v]  f64   written; 0 for a row without a visible key
void ReferenceAttention(const AttentionShape& shape, std::span<const SequenceRows> sequences,
                        uint32_t layer, const float* q, double* out);

}  // namespace quire
