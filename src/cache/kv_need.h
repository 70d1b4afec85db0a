// How many bytes of KV pages a sequence needs, by arithmetic alone: what SequencePages takes when
// nothing is shared. Admission, the planner and messages count with it.
//
// Between two steps a sequence holds, per layer group, the pages that the next position reads
// (cache/kv_shape.h). A step takes more: open pages for its tokens, and a sealed page beside each
// open page that becomes full.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kv_shape.h"

namespace quire {

// What a sequence of `length` tokens holds between two steps.
size_t HeldBytes(const KvShape& shape, uint32_t length);

// What the step that computes tokens [begin, end) takes beside HeldBytes(begin).
size_t StepBytes(const KvShape& shape, uint32_t begin, uint32_t end);

// The least budget in which a sequence can grow to `length` tokens, token by token.
size_t LeastBytes(const KvShape& shape, uint32_t length);

}  // namespace quire
