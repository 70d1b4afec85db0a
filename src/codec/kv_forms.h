// KvForms: the one or two forms of a layer group's pages, and which of them a query reads.
//
// Tokens are written in the open form. If K or V has a page-wise codec, a full page is turned into
// the sealed form, once (kivi.h); a side that is final when written has the same bytes in both. The
// two forms of a page may be held at the same time, and each has a size of its own.
//
// Not here: who holds pages (cache/), who seals them (model/).
//
// Invariants (kv_forms_test.cc):
//   [codec.forms.1] The form in which a query reads a page depends on the two positions alone.
//   [codec.forms.2] A query reads its own page open.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "codec/kv_codec.h"

namespace quire {

// A query at position t, in page i = t / page_size, reads page j <= i open if j < sink_pages or
// j >= i - recent_pages, else sealed.
struct ReadRule {
  uint32_t sink_pages = 0;    // 0 or 1; these pages are never sealed
  uint32_t recent_pages = 0;  // before the query's own page

  bool ReadsOpen(uint32_t query_page, uint32_t page) const {
    return page < sink_pages || uint64_t{page} + recent_pages >= query_page;
  }
};

// The bytes of a page in one form.
struct KvForm {
  KvLayout layout = {};
  KvCodec k_codec = KvCodec::kF16;
  KvCodec v_codec = KvCodec::kF16;
};

struct KvForms {
  KvForm open;
  KvForm sealed;  // page_bytes() is 0 if there is none: then the open form is final
  ReadRule rule;  // of the sealed form

  bool has_sealed() const { return sealed.layout.chunk_bytes != 0; }
};

// What may be chosen about the forms.
struct KvFormOptions {
  KvCodec k_codec = KvCodec::kF16;
  KvCodec v_codec = KvCodec::kF16;
  std::optional<uint32_t> sink_pages = {};  // unset: 1 for kivi4, 0 where nothing is sealed
  uint32_t recent_pages = 0;
};

// Of a group whose layers see `window` keys (0: all); a window group has no sink pages, since they
// leave the window. kInvalidArgument as MakeKvLayout, and for more than one sink page.
StatusOr<KvForms> MakeKvForms(const KvGeometry& geometry, const KvFormOptions& options,
                              uint32_t window);

}  // namespace quire
