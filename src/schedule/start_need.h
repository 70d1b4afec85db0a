// What it takes of the cache to start a waiting sequence, before it has pages: by arithmetic over
// its match, equal to what SequencePages takes when the engine does it.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kv_cache.h"

namespace quire {

struct StartNeed {
  uint32_t length = 0;     // tokens that the match gives
  uint32_t begin = 0;      // the first position to compute
  NodeId node = kNoNode;   // of the last whole page of the match
  size_t match_bytes = 0;  // pages of the match that nobody uses yet: they stop being evictable
};

// With what the cache has of `tokens`.
StartNeed NeedWithMatch(const KvCache& cache, NamespaceId ns, std::span<const TokenId> tokens);
// Without.
StartNeed NeedWithoutMatch(const KvCache& cache, NamespaceId ns);

// Of the budget, for the step that computes up to `end` after the start. Beside match_bytes.
size_t FirstStepBytes(const KvShape& shape, const StartNeed& need, uint32_t end);

// To hold `end` tokens between two steps, beside what the match gives. Beside match_bytes.
size_t GrowthBytes(const KvShape& shape, uint32_t length, uint32_t end);

// One open page of every layer group.
size_t OpenPageBytes(const KvShape& shape);

}  // namespace quire
