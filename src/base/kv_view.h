// KvView: what a kernel sees of one sequence's cache in one layer group. Plain pointers; owns
// nothing.
//
// The cache makes it, the attention kernels read and write through it, and neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

// Page i holds tokens [i P, (i + 1) P), in up to two forms. Which of them a query reads is a rule
// of positions alone (codec/kv_forms.h): a form that the rule names must be there.
struct KvView {
  // Base address of each page in the form that is written (open). An entry is null if the page is
  // not held in that form; entries before a window are null and never read.
  // A page is 64-byte aligned and is followed by at least 64 readable bytes.
  std::byte* const* pages = nullptr;
  // The same in the sealed form; null if the group's codecs have none. An entry is null if the page
  // is not sealed yet.
  std::byte* const* sealed = nullptr;
  uint32_t num_pages = 0;
};

}  // namespace quire
