#include "cache/kv_need.h"

#include <algorithm>

namespace quire {
namespace {

size_t OpenStride(const KvGroupShape& group) { return PageStride(group.open_page_bytes); }
size_t SealedStride(const KvGroupShape& group) { return PageStride(group.sealed_page_bytes); }

}  // namespace

size_t HeldBytes(const KvShape& shape, uint32_t length) {
  size_t bytes = 0;
  const uint32_t num_full = length / shape.page_size;
  for (const KvGroupShape& group : shape.groups) {
    const uint32_t first = std::min(group.FirstPage(length, shape.page_size), num_full);
    const size_t num_partial = length % shape.page_size != 0 ? 1 : 0;
    if (!group.has_sealed()) {
      bytes += (num_full - first + num_partial) * OpenStride(group);
      continue;
    }
    const uint32_t first_sealed = std::clamp(group.sink_pages, first, num_full);
    const uint32_t num_sealed = num_full - first_sealed;
    const size_t num_open = (first_sealed - first) + std::min(num_sealed, group.recent_pages);
    bytes += (num_open + num_partial) * OpenStride(group) + num_sealed * SealedStride(group);
  }
  return bytes;
}

size_t StepBytes(const KvShape& shape, uint32_t begin, uint32_t end) {
  size_t bytes = 0;
  const size_t num_open = shape.NumPages(end) - shape.NumPages(begin);
  for (const KvGroupShape& group : shape.groups) {
    bytes += num_open * OpenStride(group);
    if (!group.has_sealed()) continue;
    const uint32_t first = std::max(begin / shape.page_size, group.sink_pages);
    const uint32_t last = end / shape.page_size;
    if (last > first) bytes += size_t{last - first} * SealedStride(group);
  }
  return bytes;
}

size_t LeastBytes(const KvShape& shape, uint32_t length) {
  // Steps that begin a page or fill one are the largest; they grow from page to page until windows
  // are full, so the last of each kind will do.
  size_t most = 0;
  const uint32_t last_page = length == 0 ? 0 : (length - 1) / shape.page_size;
  for (const uint32_t page : {last_page, last_page == 0 ? 0 : last_page - 1})
    for (const uint32_t token : {page * shape.page_size, (page + 1) * shape.page_size - 1})
      if (token < length)
        most = std::max(most, HeldBytes(shape, token) + StepBytes(shape, token, token + 1));
  return std::max(most, HeldBytes(shape, length));
}

}  // namespace quire
