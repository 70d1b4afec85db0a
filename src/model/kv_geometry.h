// KvGeometryOf: the sizes of a model's KV pages, for MakeKvLayout (codec/kv_codec.h).
#pragma once

#include "codec/kv_codec.h"
#include "model/shape.h"

namespace quire {

inline KvGeometry KvGeometryOf(const ModelShape& shape, uint32_t page_size) {
  return {.page_size = page_size,
          .num_layers = static_cast<uint32_t>(shape.num_layers),
          .num_kv_heads = static_cast<uint32_t>(shape.num_kv_heads),
          .head_dim_k = static_cast<uint32_t>(shape.head_dim_k),
          .head_dim_v = static_cast<uint32_t>(shape.head_dim_v)};
}

}  // namespace quire
