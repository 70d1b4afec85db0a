// ModelWeights: every weight of a model, packed for the kernels, in anonymous memory.
//
// Loading (weights.cc) reads each tensor once, a band of rows at a time, on all workers, so at no
// time is there a second copy of more than a few bands.
//
// Owner: ModelWeights owns the memory; matrices and spans are views into it.
// Threads: constant after loading.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "base/threads.h"
#include "linear/packed_matrix.h"
#include "model/architecture.h"
#include "model/gguf_file.h"
#include "model/shape.h"

namespace quire {

// y = (W x) scale + bias, or (W x + bias) scale.
struct LinearLayer {
  PackedMatrix matrix;          // [rows, columns]; no rows: the file has no such layer
  std::span<const float> bias;  // [rows], or empty
  float scale = 1;
  bool scale_after_bias = false;

  explicit operator bool() const { return matrix.num_rows() > 0; }
};

// What the architecture has no rule for, or the file has not, is empty.
struct LayerWeights {
  std::span<const float> attn_norm;                 // [embedding_length]
  LinearLayer attn_q, attn_k, attn_v;               // also from a file that holds one attn_qkv
  std::span<const float> attn_q_norm, attn_k_norm;  // [head_dim_k]
  LinearLayer attn_output;
  std::span<const float> post_attention_norm;  // [embedding_length]
  std::span<const float> ffn_norm;             // [embedding_length]
  LinearLayer ffn_gate, ffn_up, ffn_down;
  std::span<const float> post_ffw_norm;  // [embedding_length]
};

struct ModelWeights {
  LinearLayer token_embd;              // [vocab_size, embedding_length]
  LinearLayer output;                  // where the file has none, with token_embd's matrix
  std::span<const float> output_norm;  // [embedding_length]
  std::span<const float> rope_freqs;   // [rope.dimension_count / 2], or empty
  std::vector<LayerWeights> layers;

  uint64_t size_bytes() const { return memory.size(); }

  AnonymousMemory memory;
};

// Requires: CheckTensors(file.header(), shape) was ok. `progress(done_bytes, total_bytes)` may be
// empty; it is called by worker 0.
// Errors: kResourceExhausted (memory), kInvalidFile (the file was cut or changed meanwhile).
StatusOr<ModelWeights> LoadWeights(const GgufFile& file, const ModelShape& shape,
                                   const Architecture& architecture, ThreadTeam& team,
                                   const std::function<void(uint64_t, uint64_t)>& progress);

}  // namespace quire
