// What the random tests of cache and schedule write in place of K and V: one number a token, a hash
// of the tokens from the start of its text, of the layer group and of the owner. So a page that
// reaches the wrong sequence, is written while shared, or is handed out while somebody reads it,
// shows in its numbers. A sealed page holds a hash of its open form.
//
// For tests: cache/cache_model.h, schedule/simulator.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/errors.h"
#include "base/ids.h"
#include "cache/kv_shape.h"
#include "cache/sequence_pages.h"

namespace quire {

// The finaliser of splitmix64.
inline uint64_t MixValue(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// Before the first token of a text; the value of a token after one with value `before`.
inline uint64_t StartValue(uint32_t group, uint32_t owner) {
  return MixValue(group * 1000 + owner + 1);
}
inline uint64_t NextValue(uint64_t before, TokenId token) {
  return MixValue(before ^ (static_cast<uint64_t>(token) + 1));
}

inline uint64_t SealedValue(std::span<const uint64_t> page) {
  uint64_t hash = 7;
  for (const uint64_t value : page) hash = MixValue(hash ^ value);
  return hash;
}

inline uint64_t* ValuesAt(std::byte* page) { return reinterpret_cast<uint64_t*>(page); }

// A full group (unless has_full is false) and, with window > 0, one of that window.
struct TestShape {
  size_t open_page_bytes = 0;
  bool seals = false;
  bool has_full = true;
  uint32_t window = 0;
  uint32_t sink_pages = 0;
  uint32_t recent_pages = 0;
};
inline KvShape MakeTestShape(uint32_t page_size, const TestShape& test) {
  KvShape shape{.page_size = page_size, .groups = {}};
  const size_t sealed = test.seals ? sizeof(uint64_t) : 0;
  if (test.has_full)
    shape.groups.push_back({.window = 0,
                            .open_page_bytes = test.open_page_bytes,
                            .sealed_page_bytes = sealed,
                            .sink_pages = test.sink_pages,
                            .recent_pages = test.recent_pages});
  if (test.window > 0)
    shape.groups.push_back({.window = test.window,
                            .open_page_bytes = test.open_page_bytes,
                            .sealed_page_bytes = sealed,
                            .recent_pages = test.recent_pages});
  return shape;
}

// Plays the forward pass in one group: writes tokens [begin, end) and seals pages that become full.
inline void WriteValues(const KvShape& shape, uint32_t group, const KvView& view,
                        std::span<const uint64_t> values, uint32_t begin, uint32_t end) {
  const uint32_t page_size = shape.page_size;
  for (uint32_t t = begin; t < end; ++t)
    ValuesAt(view.pages[t / page_size])[t % page_size] = values[t];
  for (uint32_t page = begin / page_size; page < end / page_size; ++page)
    if (shape.groups[group].Seals(page))
      *ValuesAt(view.sealed[page]) = SealedValue({ValuesAt(view.pages[page]), page_size});
}

// kInternal if a page of the group holds other values than the first length() of `values`.
inline Status CheckValues(const KvShape& shape, uint32_t group, const SequencePages& pages,
                          std::span<const uint64_t> values) {
  const PageTable& table = pages.table(group);
  for (uint32_t page = table.first_page(); page < table.num_pages(); ++page) {
    const uint32_t first = page * shape.page_size;
    const auto want = values.subspan(first, std::min(shape.page_size, pages.length() - first));
    if (const PageRef& open = table.open(page);
        open && !std::ranges::equal(want, std::span(ValuesAt(open.address()), want.size())))
      return Internal("page {} of group {} holds other tokens' values", page, group);
    if (const PageRef& sealed = table.sealed(page);
        sealed && *ValuesAt(sealed.address()) != SealedValue(want))
      return Internal("sealed page {} of group {} holds other tokens' values", page, group);
  }
  return OkStatus();
}

}  // namespace quire
