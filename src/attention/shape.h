// AttentionShape: what one attention layer computes, in numbers. The same for every layer of a
// layer group; the head_dims and the page_size are those of the layout.
//
// Not here: which rows there are in this step (plan.h), where pages lie (base/kv_layout.h).
#pragma once

#include <cstdint>

#include "base/kv_layout.h"
#include "base/kv_view.h"
#include "codec/kv_codec.h"
#include "codec/kv_forms.h"

namespace quire {

struct AttentionShape {
  KvLayout layout;                  // of the open form; both forms have the same numbers of things
  KvCodec k_codec = KvCodec::kF16;  // of the open form: f32 or f16
  KvCodec v_codec = KvCodec::kF16;
  uint32_t num_q_heads = 0;
  uint32_t num_kv_heads = 0;  // query head h reads KV head h / group_size()
  float scale = 1.0f;         // of the dot products, usually 1 / sqrt(head_dim_k)
  uint32_t window = 0;        // a row at position p sees keys j <= p, with p - window < j; 0: all
  KvForm sealed = {};         // page_bytes() is 0 if the open form is final
  ReadRule rule = {};         // of the sealed form

  uint32_t group_size() const { return num_q_heads / num_kv_heads; }

  bool has_sealed() const { return sealed.layout.chunk_bytes != 0; }
  // The form in which a row of page `query_page` reads page `page`, and the page in that form.
  bool ReadsOpen(uint32_t query_page, uint32_t page) const {
    return !has_sealed() || rule.ReadsOpen(query_page, page);
  }
  const std::byte* PageFor(uint32_t query_page, uint32_t page, const KvView& kv) const {
    return ReadsOpen(query_page, page) ? kv.pages[page] : kv.sealed[page];
  }

  // The first key that a row at `position` sees.
  uint32_t FirstKey(uint32_t position) const {
    return window == 0 || position < window ? 0 : position - window + 1;
  }
};

}  // namespace quire
