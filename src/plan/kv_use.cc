#include "plan/kv_use.h"

#include <algorithm>

#include "cache/page_memory.h"

namespace quire {
namespace {

uint64_t Saturated(unsigned __int128 value) {
  return static_cast<uint64_t>(std::min<unsigned __int128>(value, UINT64_MAX));
}

// a + b * times
uint64_t Sum(uint64_t a, uint64_t b, uint32_t times) {
  return Saturated(static_cast<unsigned __int128>(b) * times + a);
}

// Requires: the pages of all groups.
KvUse UseOf(const KvShape& shape, const std::vector<GroupPages>& pages) {
  KvUse use;
  for (size_t g = 0; g < pages.size(); ++g) {
    const KvGroupShape& group = shape.groups[g];
    const GroupUse one = {.pages = pages[g],
                          .page_bytes = pages[g].open * group.open_page_bytes +
                                        pages[g].sealed * group.sealed_page_bytes,
                          .counted_bytes = CountedBytes(group, pages[g])};
    use.groups.push_back(one);
    use.page_bytes += one.page_bytes;
    use.counted_bytes += one.counted_bytes;
  }
  return use;
}

uint64_t WholeExtents(uint64_t num_pages, uint64_t page_bytes) {
  constexpr uint64_t kExtent = PageMemory::kExtentBytes;
  const uint64_t bytes = Sum(0, PageStride(page_bytes), 1);
  const uint64_t all = Saturated(static_cast<unsigned __int128>(bytes) * num_pages);
  return all > UINT64_MAX - kExtent ? UINT64_MAX : (all + kExtent - 1) / kExtent * kExtent;
}

}  // namespace

KvUse ConversationUse(const KvShape& shape, uint32_t tokens, uint32_t shared) {
  const LargestStep step = FindLargestStep(shape, tokens, shared);
  std::vector<GroupPages> pages;
  for (const KvGroupShape& group : shape.groups) {
    const GroupPages held = HeldPages(group, shape.page_size, step.begin, shared);
    const GroupPages taken = StepPages(group, shape.page_size, step.begin, step.end);
    pages.push_back({.open = held.open + taken.open, .sealed = held.sealed + taken.sealed});
  }
  return UseOf(shape, pages);
}

KvUse SharedUse(const KvShape& shape, uint32_t shared) {
  std::vector<GroupPages> pages;
  for (const KvGroupShape& group : shape.groups)
    pages.push_back(HeldPages(group, shape.page_size, shared));
  return UseOf(shape, pages);
}

KvUse TotalUse(const KvUse& prefix, const KvUse& conversation, uint32_t num_conversations) {
  KvUse total = prefix;
  for (size_t g = 0; g < total.groups.size(); ++g) {
    GroupUse& sum = total.groups[g];
    const GroupUse& one = conversation.groups[g];
    sum.pages.open = Sum(sum.pages.open, one.pages.open, num_conversations);
    sum.pages.sealed = Sum(sum.pages.sealed, one.pages.sealed, num_conversations);
    sum.page_bytes = Sum(sum.page_bytes, one.page_bytes, num_conversations);
    sum.counted_bytes = Sum(sum.counted_bytes, one.counted_bytes, num_conversations);
  }
  total.page_bytes = Sum(prefix.page_bytes, conversation.page_bytes, num_conversations);
  total.counted_bytes = Sum(prefix.counted_bytes, conversation.counted_bytes, num_conversations);
  return total;
}

uint64_t CommittedBytes(const KvShape& shape, const KvUse& use) {
  uint64_t bytes = 0;
  for (size_t g = 0; g < use.groups.size(); ++g) {
    const KvGroupShape& group = shape.groups[g];
    for (const auto& [pages, page_bytes] :
         {std::pair{use.groups[g].pages.open, group.open_page_bytes},
          std::pair{use.groups[g].pages.sealed, group.sealed_page_bytes}})
      bytes = Sum(bytes, WholeExtents(pages, page_bytes), 1);
  }
  return bytes;
}

}  // namespace quire
