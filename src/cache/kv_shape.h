// KvShape: what the cache knows of a model's KV: its layer groups and the sizes of their pages.
//
// A layer group is layers whose KV lives alike: all tokens (`full`), or the last `window` of them.
// Each group has two page classes: open pages, in the form that is written token by token, and
// sealed pages, what a page-wise codec makes of a full one. A codec whose bytes are final when they
// are written (f16, f32) has open pages only.
//
// Which form a page is read in (notes of the codecs, docs/formats.md): a query in page i reads page
// j <= i open if j = i, j < sink_pages or j >= i - recent_pages, else sealed. So a table needs
//   open    sink pages for ever; the page in progress and recent_pages before it; all pages without
//           a sealed form
//   sealed  every full page but the sinks
//
// Not here: what a form's bytes hold (codec/), which layers are in a group (model/).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/page_pool.h"
#include "codec/kv_forms.h"

namespace quire {

struct KvGroupShape {
  uint32_t window = 0;           // keys that a position sees, itself included; 0: all
  size_t open_page_bytes = 0;    // > 0
  size_t sealed_page_bytes = 0;  // 0: no sealed form
  uint32_t sink_pages = 0;       // 0 without a sealed form, and in window groups
  uint32_t recent_pages = 0;     // 0 without a sealed form

  bool has_sealed() const { return sealed_page_bytes != 0; }
  // The first page that the query at `position` reads.
  uint32_t FirstPage(uint32_t position, uint32_t page_size) const {
    return window == 0 || position < window ? 0 : (position - window + 1) / page_size;
  }
  // Page `page` is sealed as soon as it is full.
  bool Seals(uint32_t page) const { return has_sealed() && page >= sink_pages; }
  // Page `page`, which is full, is read open too by queries in page `at` or later ones.
  bool StaysOpen(uint32_t page, uint32_t at) const {
    return !Seals(page) || page + recent_pages >= at;
  }
};

// Of a group whose layers see `window` keys (0: all) and whose pages have these forms.
inline KvGroupShape GroupShapeOf(uint32_t window, const KvForms& forms) {
  KvGroupShape group = {.window = window, .open_page_bytes = forms.open.layout.page_bytes()};
  if (!forms.has_sealed()) return group;
  group.sealed_page_bytes = forms.sealed.layout.page_bytes();
  group.sink_pages = forms.rule.sink_pages;
  group.recent_pages = forms.rule.recent_pages;
  return group;
}

struct KvShape {
  uint32_t page_size = 64;  // tokens
  std::vector<KvGroupShape> groups;

  uint32_t num_groups() const { return static_cast<uint32_t>(groups.size()); }
  uint32_t NumPages(uint32_t length) const { return (length + page_size - 1) / page_size; }
};

// Page classes of group g.
constexpr PageClass OpenClass(uint32_t group) { return static_cast<PageClass>(2 * group); }
constexpr PageClass SealedClass(uint32_t group) { return static_cast<PageClass>(2 * group + 1); }

// [page class] for PagePoolOptions.
inline std::vector<size_t> PageBytesByClass(const KvShape& shape) {
  std::vector<size_t> bytes;
  for (const KvGroupShape& group : shape.groups) {
    bytes.push_back(group.open_page_bytes);
    bytes.push_back(group.sealed_page_bytes);
  }
  return bytes;
}

}  // namespace quire
