// Capacity: the questions that a plan answers, each the inverse of another: conversations in a
// budget, tokens of each, bytes for both.
//
// The budget is that of the KV pages alone (--kv-memory). `shared`: tokens of a prefix that all
// conversations begin with, in whole pages (SharedTokens); its pages are counted once (PLN-11).
//
// Threads: pure functions. Cost: a search of a context takes some 27 counts.
#pragma once

#include <cstdint>

#include "plan/kv_use.h"

namespace quire {

// Of `num_users` conversations of `tokens` tokens each; UINT64_MAX: more than that.
// Requires here and below: shared < tokens <= kMostPlannedTokens.
uint64_t BytesFor(const KvShape& shape, uint32_t num_users, uint32_t tokens, uint32_t shared);

// The most conversations of `tokens` tokens; kMostPlannedUsers: at least so many.
uint32_t UsersIn(const KvShape& shape, uint64_t budget_bytes, uint32_t tokens, uint32_t shared);

// The longest context, at most `most_tokens`, that each of `num_users` conversations can have; 0 if
// not even one token beside the shared ones.
uint32_t ContextIn(const KvShape& shape, uint64_t budget_bytes, uint32_t num_users, uint32_t shared,
                   uint32_t most_tokens);

}  // namespace quire
