// ConfigFamilies: how model families keep their KV and their parameters, by model_type and the
// fields of their config classes.
//
// Threads: constants.
// Source: configuration_*.py (defaults) and modeling_*.py (tensors) of transformers 4.57.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/config_fields.h"

namespace quire {

// Which layers see a window of `sliding_window` keys. Where a family has layer_types, that list
// comes before all of these.
enum class ConfigWindow {
  kNone,
  kIgnored,     // the field is not to be trusted
  kEveryLayer,  // unless the field is null
  kUpper,       // layers from max_window_layers on, if use_sliding_window
  kIfUsed,      // every layer, if use_sliding_window
  kPattern,     // all but each sliding_window_pattern-th layer
};

// A yes or no that a field may say; without a field it is always `fallback`.
struct ConfigFlag {
  std::string_view field = {};
  bool fallback = false;
};

// Weights of norms on heads of q and k.
enum class ConfigHeadNorm {
  kNone,
  kOneHead,         // of one head of q, and one of k
  kOneHeadAndBias,  // the same with a bias
  kAllHeads,        // of all heads of q, and all of k
};

enum class ConfigAttention {
  kHeads,   // num_key_value_heads of head_dim
  kFalcon,  // one KV head, unless multi_query is off or the decoder architecture is new
  kLatent,  // kv_lora_rank and qk_rope_head_dim
};

// The fields that give the numbers of the experts. A family without experts has none of them.
struct ConfigExperts {
  std::string_view count = {};
  std::string_view width = {};         // of one expert's feed forward
  std::string_view shared_count = {};  // shared experts, each as wide as the others
  std::string_view shared_width = {};  // a shared expert of this width, with a gate of its own
  bool has_bias = false;               // on the router and the experts
  bool has_correction = false;         // a number an expert that only the choice heeds
};

struct ConfigFamily {
  std::string_view model_type;
  bool runs = false;  // this engine has the architecture, if no window or rope speaks against it
  ConfigAttention attention = ConfigAttention::kHeads;
  uint32_t default_q_heads = 0;
  uint32_t default_kv_heads = 0;  // 0: as many as query heads
  uint32_t default_head_dim = 0;  // 0: hidden_size / num_attention_heads

  ConfigWindow window = ConfigWindow::kNone;
  uint32_t default_window = 0;
  uint32_t default_period = 0;
  bool has_layer_types = false;

  uint32_t default_vocab = 0;
  uint32_t default_context = 0;
  bool default_tied = false;

  ConfigFlag qkv_bias = {};
  ConfigFlag output_bias = {};
  ConfigFlag mlp_bias = {};
  bool has_gate = true;          // three matrices in a feed forward, not two
  bool has_logits_bias = false;  // on the output matrix
  uint32_t layer_norms = 2;      // vectors of hidden_size in a layer; a LayerNorm with bias has two
  uint32_t final_norms = 1;
  ConfigHeadNorm head_norm = ConfigHeadNorm::kNone;
  ConfigFlag has_head_norm = {.fallback = true};
  bool has_positions = false;  // an embedding of positions
  bool has_sinks = false;      // one number a query head and layer
  ConfigExperts experts = {};
  std::span<const ConfigFields::Alias> aliases = {};
};

// In the order of the alphabet.
std::span<const ConfigFamily> ConfigFamilies();
const ConfigFamily* FindConfigFamily(std::string_view model_type);  // nullptr if there is none

// A multimodal model's model_type, and that of its text_config unless it says another; nullptr if
// this is none of those known.
struct ConfigWrapper {
  std::string_view model_type;
  std::string_view default_text_type;
  bool runs = false;  // this engine has the architecture that a GGUF file of it names
};
std::span<const ConfigWrapper> ConfigWrappers();

}  // namespace quire
