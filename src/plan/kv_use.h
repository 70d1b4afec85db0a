// KvUse: what conversations hold of a KV cache, group by group: pages, their bytes, and what of
// them is not keys and values. All counts are those of cache/kv_need.h, which the engine admits by.
//
// A conversation of n tokens is counted at its largest: in the step, on its way to n tokens, in
// which it has most pages. So a plan holds at every moment, not only at the end.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/kv_need.h"
#include "plan/kv_model.h"

namespace quire {

constexpr uint32_t kMostPlannedTokens = 1 << 27;
constexpr uint32_t kMostPlannedUsers = 1'000'000;

struct GroupUse {
  GroupPages pages;
  uint64_t page_bytes = 0;     // of the pages
  uint64_t counted_bytes = 0;  // of the budget: each page rounded up to 4 KiB
};

struct KvUse {
  std::vector<GroupUse> groups;  // [layer group]
  uint64_t page_bytes = 0;
  uint64_t counted_bytes = 0;
};

// Of one conversation, beside its first `shared` tokens (whole pages).
// Requires: shared <= tokens <= kMostPlannedTokens, shared a multiple of the page size.
KvUse ConversationUse(const KvShape& shape, uint32_t tokens, uint32_t shared = 0);
// Of the shared tokens themselves, once for all who share them.
KvUse SharedUse(const KvShape& shape, uint32_t shared);

// Several conversations at once, and the prefix that they share. Sums beyond 64 bits stay at the
// largest number.
KvUse TotalUse(const KvUse& prefix, const KvUse& conversation, uint32_t num_conversations);

// What the system has given when a fresh pool holds these pages: whole extents of 2 MiB in each
// page class. The slack is that less counted_bytes. (Where a class ends with the budget, its last
// extent is shorter.)
uint64_t CommittedBytes(const KvShape& shape, const KvUse& use);

// The part of `prefix_tokens` that conversations can share: whole pages.
constexpr uint32_t SharedTokens(uint32_t prefix_tokens, uint32_t page_size) {
  return prefix_tokens / page_size * page_size;
}

}  // namespace quire
