// ShapeText: a model as a user writes it: "layers=80,kv_heads=8,head_dim=128".
//
//   layers          needed
//   kv_heads        needed, but for latent attention
//   head_dim        needed, but for latent attention; also of V unless v_head_dim says otherwise
//   q_heads         a multiple of kv_heads; unset: kv_heads
//   window          keys that a layer sees; unset: all
//   window_layers   how many layers have that window; unset: every layer
//   kv_lora_rank, rope_dim   latent attention (MLA), both or none; then q_heads, head_dim (of K,
//                   with its rope part) and v_head_dim say what it would be as multi-head attention
//   params, active_params, context
//
// Counts may have a unit, in powers of 1000: params=70B, context=128k.
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
