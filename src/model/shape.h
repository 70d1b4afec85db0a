// ModelShape: the numbers that say what a model is: lengths, heads, rope, windows.
//
// Read from a header's keys alone (ReadShape of architecture.h) and checked there: every field is
// in range, num_q_heads is a multiple of num_kv_heads, rope.dimension_count is even and at most
// head_dim_k, and `layers` has one entry for each layer. What an architecture does with them is
// architecture.h; weights are elsewhere.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/gguf_header.h"

namespace quire {

enum class RopeScaling { kNone, kLinear, kYarn };

// Rotary position embedding: which part of a head turns, and how fast.
struct RopeShape {
  int dimension_count = 0;  // values of a head that are rotated, from its start
  double freq_base = 0;     // > 1
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;  // positions are divided by it; 1 with kNone
  int original_context_length = 0;
  double attn_factor = 1;  // multiplies cos and sin
  double beta_fast = 32;   // yarn's ramp
  double beta_slow = 1;
  double log_multiplier = 0;  // yarn's magnitude: M of Y = (1 + 0.1 A ln f) / (1 + 0.1 M ln f)
};

// What may differ from layer to layer.
struct LayerShape {
  int window = 0;  // keys that a position sees, itself included; 0: all
  int rope = 0;    // which of ModelShape::ropes turns q and k
};

struct ModelShape {
  std::string architecture;
  int context_length = 0;  // what the model was trained for
  int embedding_length = 0;
  int num_layers = 0;  // without next-token-prediction layers
  int feed_forward_length = 0;
  int num_q_heads = 0;
  int num_kv_heads = 0;
  int head_dim_k = 0;  // also of q
  int head_dim_v = 0;
  double rms_epsilon = 0;
  double attention_scale = 0;  // of q.k
  double embedding_scale = 1;  // of the rows of token_embd, applied in f32
  int vocab_size = 0;          // rows of token_embd
  int num_tokens = 0;          // ids from here to vocab_size - 1 are padding: mask their logits
  int sliding_window = 0;      // of the layers that have one; 0: none has
  // Never empty, all of one dimension_count; the first is that of the common keys.
  std::vector<RopeShape> ropes;
  std::vector<LayerShape> layers;  // [num_layers]

  const RopeShape& rope() const { return ropes.front(); }
  int num_windowed_layers() const;

  int group_size() const { return num_q_heads / num_kv_heads; }
  int q_rows() const { return num_q_heads * head_dim_k; }
  int k_rows() const { return num_kv_heads * head_dim_k; }
  int v_rows() const { return num_kv_heads * head_dim_v; }
  int attention_columns() const { return num_q_heads * head_dim_v; }  // of attn_output

  // Bytes of K and V of one token over all layers, at so many bytes an element.
  int64_t KvBytesPerToken(int element_bytes) const {
    return int64_t{num_layers} * (int64_t{k_rows()} + v_rows()) * element_bytes;
  }
};

std::string_view RopeScalingName(RopeScaling scaling);

// Reads the keys that all architectures share, with the prefix `architecture.`, and the vocabulary
// size from token_embd.weight, and checks them. A value of 0 in an optional key means "not set".
// All layers are the same then: no window, the one rope. Architectures read keys of their own after
// it: call ReadShape of architecture.h instead.
StatusOr<ModelShape> ReadCommonShape(const GgufHeader& header, std::string_view architecture);

}  // namespace quire
