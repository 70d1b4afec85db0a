// EvictReason: why pages left the prefix tree.
#pragma once

#include <cstdint>
#include <string_view>

namespace quire {

enum class EvictReason : uint8_t {
  kPoolFull,     // room was needed, and the page was worth least
  kTenantShare,  // room was needed, and its tenant has more than its share: pages of others that
                 // are worth no more stay. Also what goes with a namespace whose place was needed
  kTtl,          // room was needed, and the page was retained, until a time that has come, and not
                 // used since
  kDropped,      // a caller dropped it
  kWindow,       // room was needed, and the page is one that only a sequence going on just there
                 // would read: of a window group, or the open form of a sealed one
};
constexpr uint32_t kNumEvictReasons = 5;

// "pool_full", "tenant_share", "ttl", "dropped", "window".
std::string_view EvictReasonName(EvictReason reason);

// Of one page class: a page counts each time that a node takes it or lets it go.
struct EvictionCounts {
  uint64_t num_kept = 0;                        // came
  uint64_t num_evicted[kNumEvictReasons] = {};  // went: [EvictReason]
};

}  // namespace quire
