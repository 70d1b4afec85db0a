// KvModel: what the planner knows of a model: where its KV lives, and how large the rest is.
//
// Made from a GGUF header (gguf_model.h), a Hugging Face config.json (config_json.h) or a shape
// that a user writes (shape_text.h). It says nothing about codecs, pages or memory.
//
// Every reader checks its result with CheckKvModel, so the KV bytes of one sequence of up to
// kMaxPlanContext tokens fit in 64 bits.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace quire {

constexpr uint32_t kMaxPlanLayers = 1'024;
constexpr uint32_t kMaxPlanDim =
    65'536;  // heads, head dims, ranks; less in GGUF (model/layer_shape.h)
constexpr uint32_t kMaxPlanValues = 1'048'576;       // of a token in one layer
constexpr uint32_t kMaxPlanContext = 1'073'741'824;  // also of windows

// Layers whose KV lives alike and has the same size.
struct KvLayers {
  uint32_t num_layers = 0;
  uint32_t window = 0;  // keys that a position sees, itself included; 0: all
  // Of one layer. In latent attention (MLA): 1 head, head_dim_k = the latent's rank, head_dim_v =
  // 0.
  uint32_t num_kv_heads = 0;
  uint32_t head_dim_k = 0;
  uint32_t head_dim_v = 0;
  uint32_t latent_rope_dim = 0;  // of the key part that all heads share; 0: not latent attention

  bool is_latent() const { return latent_rope_dim != 0; }
};

struct KvModel {
  std::string name;             // as the file calls it, or the file's name
  std::string architecture;     // "llama", "deepseek_v3", "shape"
  std::string source;           // "GGUF header", "config.json", "--shape"
  bool runs = false;            // this engine has the architecture
  uint32_t context_length = 0;  // what the model was trained for; 0: not said
  uint32_t num_layers = 0;      // those with and without KV of their own
  // What a layer would hold as multi-head attention. 0: not known (a shape in words may not say).
  uint32_t num_q_heads = 0;
  uint32_t q_head_dim = 0;       // of K; latent: nope + rope
  uint32_t v_head_dim = 0;       // of V
  std::vector<KvLayers> groups;  // full ones first, then windows from the smallest on

  // Exact for a GGUF file (bytes of its tensors), else parameters by formula. Unset: not known.
  std::optional<uint64_t> weight_bytes;
  std::optional<uint64_t> num_params;
  std::optional<uint64_t> num_active_params;  // of one token; with experts less than num_params
  std::string weights_dtype;                  // "Q4_K", "bf16": what is most of them
  std::vector<std::string> notes;             // what a reader must know: "no window key: ..."
};

// Groups layers that are alike but for their windows: windows[i] is that of layer i, 0 for none.
// Those without a window come first, then windows from the smallest on, as in LayerGroups.
std::vector<KvLayers> GroupLayers(const KvLayers& layer, std::span<const uint32_t> windows);

// kUnsupported if a number is beyond what any known model has.
Status CheckKvModel(const KvModel& model);

}  // namespace quire
