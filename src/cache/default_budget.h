// DefaultKvBudget: what the KV pages may take where nobody says: the engine's rule and the
// planner's.
//
// Threads: a pure function.
#pragma once

#include <algorithm>
#include <cstdint>

namespace quire {

constexpr uint64_t kLeastDefaultKvBudget = uint64_t{256} << 20;

// Half of what is free beside the weights: the pages are committed only as they are used.
// `available_bytes` is AvailableMemoryBytes(), `unread_weight_bytes` what is still to come of it.
constexpr uint64_t DefaultKvBudget(uint64_t available_bytes, uint64_t unread_weight_bytes) {
  const uint64_t left =
      available_bytes > unread_weight_bytes ? available_bytes - unread_weight_bytes : 0;
  return std::max(left / 2, kLeastDefaultKvBudget);
}

}  // namespace quire
