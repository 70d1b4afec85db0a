// KvView: what a kernel sees of one sequence's cache. Plain pointers; owns nothing.
//
// The cache makes it, the attention kernels read and write through it, and neither knows the other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quire {

struct KvView {
  // Base address of each page in token order: pages[i] holds tokens [i P, (i + 1) P).
  // A page is 64-byte aligned and is followed by at least 64 readable bytes.
  std::byte* const* pages = nullptr;
  std::byte* const* sealed = nullptr;
  uint32_t num_pages = 0;
};

}  // namespace quire
