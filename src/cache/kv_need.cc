#include "cache/kv_need.h"

#include <algorithm>

namespace quire {

GroupPages HeldPages(const KvGroupShape& group, uint32_t page_size, uint32_t length,
                     uint32_t shared) {
  const uint32_t num_full = length / page_size;
  const uint32_t first =
      std::min(std::max(group.FirstPage(length, page_size), shared / page_size), num_full);
  const uint64_t num_partial = length % page_size != 0 ? 1 : 0;
  if (!group.has_sealed()) return {.open = num_full - first + num_partial};
  const uint32_t first_sealed = std::clamp(group.sink_pages, first, num_full);
  const uint32_t num_sealed = num_full - first_sealed;
  const uint64_t num_open = (first_sealed - first) + std::min(num_sealed, group.recent_pages);
  return {.open = num_open + num_partial, .sealed = num_sealed};
}

GroupPages StepPages(const KvGroupShape& group, uint32_t page_size, uint32_t begin, uint32_t end) {
  const auto num_pages = [&](uint32_t length) { return (length + page_size - 1) / page_size; };
  GroupPages pages = {.open = num_pages(end) - num_pages(begin)};
  if (!group.has_sealed()) return pages;
  const uint32_t first = std::max(begin / page_size, group.sink_pages), last = end / page_size;
  if (last > first) pages.sealed = last - first;
  return pages;
}

size_t CountedBytes(const KvGroupShape& group, const GroupPages& pages) {
  return pages.open * PageStride(group.open_page_bytes) +
         pages.sealed * PageStride(group.sealed_page_bytes);
}

size_t HeldBytes(const KvShape& shape, uint32_t length, uint32_t shared) {
  size_t bytes = 0;
  for (const KvGroupShape& group : shape.groups)
    bytes += CountedBytes(group, HeldPages(group, shape.page_size, length, shared));
  return bytes;
}

size_t StepBytes(const KvShape& shape, uint32_t begin, uint32_t end) {
  size_t bytes = 0;
  for (const KvGroupShape& group : shape.groups)
    bytes += CountedBytes(group, StepPages(group, shape.page_size, begin, end));
  return bytes;
}

LargestStep FindLargestStep(const KvShape& shape, uint32_t length, uint32_t shared) {
  // Steps that begin a page or fill one are the largest; they grow from page to page until windows
  // are full, so the last of each kind will do.
  LargestStep largest = {length, length};
  size_t most = HeldBytes(shape, length, shared);
  const uint32_t last_page = length == 0 ? 0 : (length - 1) / shape.page_size;
  for (const uint32_t page : {last_page, last_page == 0 ? 0 : last_page - 1})
    for (const uint32_t token : {page * shape.page_size, (page + 1) * shape.page_size - 1}) {
      if (token >= length || token < shared) continue;
      const size_t bytes = HeldBytes(shape, token, shared) + StepBytes(shape, token, token + 1);
      if (bytes <= most) continue;
      most = bytes;
      largest = {token, token + 1};
    }
  return largest;
}

size_t LeastBytes(const KvShape& shape, uint32_t length, uint32_t shared) {
  const LargestStep largest = FindLargestStep(shape, length, shared);
  return HeldBytes(shape, largest.begin, shared) + StepBytes(shape, largest.begin, largest.end);
}

}  // namespace quire
