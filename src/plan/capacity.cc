#include "plan/capacity.h"

#include <algorithm>

namespace quire {

uint64_t BytesFor(const KvShape& shape, uint32_t num_users, uint32_t tokens, uint32_t shared) {
  return TotalUse(SharedUse(shape, shared), ConversationUse(shape, tokens, shared), num_users)
      .counted_bytes;
}

uint32_t UsersIn(const KvShape& shape, uint64_t budget_bytes, uint32_t tokens, uint32_t shared) {
  const uint64_t prefix = SharedUse(shape, shared).counted_bytes;
  if (prefix > budget_bytes) return 0;
  const uint64_t each = ConversationUse(shape, tokens, shared).counted_bytes;
  return static_cast<uint32_t>(
      std::min<uint64_t>((budget_bytes - prefix) / each, kMostPlannedUsers));
}

uint32_t ContextIn(const KvShape& shape, uint64_t budget_bytes, uint32_t num_users, uint32_t shared,
                   uint32_t most_tokens) {
  uint32_t fits = shared, high = std::max(most_tokens, shared);  // the answer is in [fits, high]
  while (fits < high) {
    const uint32_t middle = fits + (high - fits + 1) / 2;
    if (BytesFor(shape, num_users, middle, shared) <= budget_bytes)
      fits = middle;
    else
      high = middle - 1;
  }
  return fits == shared ? 0 : fits;
}

}  // namespace quire
