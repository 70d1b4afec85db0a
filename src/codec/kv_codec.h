// KvCodec: how K and V vectors become bytes in a page.
//
// f32 and f16 are final when written. Page-wise codecs (kivi4) are written in their open form, f16,
// and sealed when the page is full: its sealed form depends on all tokens of the page.
//
// Names and sizes are here; which form a query reads is kv_forms.h, sealing is kivi.h, the kernels
// that write and read pages are in attention/. Not here: where a page lies (cache/).
#pragma once

#include <string_view>

#include "base/kv_layout.h"
#include "base/status.h"

namespace quire {

enum class KvCodec { kF32, kF16, kKivi4 };

std::string_view KvCodecName(KvCodec codec);
StatusOr<KvCodec> ParseKvCodec(std::string_view name);

// Whether a page is sealed when it is full, not final when written.
bool IsPageWise(KvCodec codec);
// The codec in which tokens are written: f16 for page-wise codecs, else the codec itself.
KvCodec OpenForm(KvCodec codec);
// Bytes of one value. Requires: final when written.
size_t KvElementBytes(KvCodec codec);

struct KvGeometry {
  uint32_t page_size = 64;
  uint32_t num_layers = 0;
  uint32_t num_kv_heads = 0;
  uint32_t head_dim_k = 0;
  uint32_t head_dim_v = 0;
};

// The layout of a page in the final form of the two codecs: for a page-wise codec the sealed one.
// kInvalidArgument unless page_size is a positive multiple of 16 and every count is positive.
StatusOr<KvLayout> MakeKvLayout(const KvGeometry& geometry, KvCodec k, KvCodec v);

}  // namespace quire
