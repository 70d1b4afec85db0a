// ForwardBuffers: the f32 rows that a step of the forward pass writes and reads (forward.cc).
#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "linear/activations.h"
#include "model/shape.h"

namespace quire {

// Room for `max_rows` rows; all row-major and contiguous.
struct ForwardBuffers {
  static StatusOr<ForwardBuffers> Create(const ModelShape& shape, uint32_t max_rows);

  float* hidden = nullptr;    // [rows, embedding_length], the residual stream
  float* normed = nullptr;    // [rows, embedding_length]; a branch's output before its own norm
  float* q = nullptr;         // [rows, num_q_heads, head_dim_k]
  float* k = nullptr;         // [rows, num_kv_heads, head_dim_k]
  float* v = nullptr;         // [rows, num_kv_heads, head_dim_v]
  float* attended = nullptr;  // [rows, num_q_heads, head_dim_v]
  float* gate = nullptr;      // [rows, feed_forward_length]
  float* up = nullptr;        // [rows, feed_forward_length]
  float* cos = nullptr;       // [rows, ropes, rope.dimension_count / 2]
  float* sin = nullptr;       // [rows, ropes, rope.dimension_count / 2]
  Int8Buffer
      normed_int8;  // of `normed`, which is written while branch_int8 is read, and vice versa
  Int8Buffer branch_int8;  // of `attended`, later of `gate`

  AnonymousMemory memory;
};

}  // namespace quire
