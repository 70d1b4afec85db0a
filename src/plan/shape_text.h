// ShapeText: a model as a user writes it: "layers=80,kv_heads=8,head_dim=128".
//
// Keys: layers, kv_heads, head_dim (needed); v_head_dim, q_heads, window, window_layers,
// kv_lora_rank and rope_dim (latent attention: instead of kv_heads and head_dim), params,
// active_params, context. Counts may have a unit: params=70B, context=128k (powers of 1000).
//
// Threads: a pure function.
#pragma once

#include <string_view>

#include "base/status.h"
#include "plan/kv_model.h"

namespace quire {

// kInvalidArgument: the message names the key and what it may be, or lists the keys.
StatusOr<KvModel> ReadShapeText(std::string_view text);

}  // namespace quire
