// KvCodec: how K and V vectors become bytes in a page. Here the plain ones, f32 and f16; sizes and
// names are here, the kernels that write and read pages are in attention/.
//
// Not here: where a page lies (cache/), who reads it (attention/).
#pragma once

#include <string_view>

#include "base/kv_layout.h"
#include "base/status.h"

namespace quire {

enum class KvCodec { kF32, kF16 };

std::string_view KvCodecName(KvCodec codec);
StatusOr<KvCodec> ParseKvCodec(std::string_view name);
size_t KvElementBytes(KvCodec codec);

struct KvGeometry {
  uint32_t page_size = 64;
  uint32_t num_layers = 0;
  uint32_t num_kv_heads = 0;
  uint32_t head_dim_k = 0;
  uint32_t head_dim_v = 0;
};

// kInvalidArgument unless page_size is a positive multiple of 16 and every count is positive.
StatusOr<KvLayout> MakeKvLayout(const KvGeometry& geometry, KvCodec k, KvCodec v);

}  // namespace quire
