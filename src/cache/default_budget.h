// DefaultKvBudget: what the KV pages may take where nobody says: the engine's rule and the
// planner's.
//
// Threads: a pure function.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quire {

// Enough to start with where the weights leave little.
constexpr uint64_t kLeastDefaultKvBudget = uint64_t{256} << 20;

// Half of what is free beside the weights: the pages are committed only as they are used. At least
// kLeastDefaultKvBudget, but no more than a quarter of what is free: a small container is not to be
// killed for it. `free_bytes` is that of ReadFreeMemory() (0: not known), `unread_weight_bytes`
// what is still to come of it.
constexpr uint64_t DefaultKvBudget(uint64_t free_bytes, uint64_t unread_weight_bytes) {
  if (free_bytes == 0) return kLeastDefaultKvBudget;
  const uint64_t left = free_bytes > unread_weight_bytes ? free_bytes - unread_weight_bytes : 0;
  return std::max(left / 2, std::min(free_bytes / 4, kLeastDefaultKvBudget));
}

}  // namespace quire
