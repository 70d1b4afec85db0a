// How many KV pages, and bytes of them, a sequence needs, by arithmetic alone: what SequencePages
// takes. Admission, the planner and messages count with it.
//
// Between two steps a sequence holds, per layer group, the pages that the next position reads
// (cache/kv_shape.h). A step takes more: open pages for its tokens, and a sealed page beside each
// open page that becomes full.
//
// `shared` below: the sequence's first tokens whose pages others hold anyway, a multiple of the
// page size; what is counted is the sequence's own. 0: all of it is.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/kv_shape.h"

namespace quire {

// Pages of one layer group in each form.
struct GroupPages {
  uint64_t open = 0;
  uint64_t sealed = 0;

  bool operator==(const GroupPages&) const = default;
};

// What a sequence of `length` tokens holds between two steps of one group.
GroupPages HeldPages(const KvGroupShape& group, uint32_t page_size, uint32_t length,
                     uint32_t shared = 0);
// What the step that computes tokens [begin, end) takes of one group beside HeldPages(begin).
GroupPages StepPages(const KvGroupShape& group, uint32_t page_size, uint32_t begin, uint32_t end);
// As the budget counts them.
size_t CountedBytes(const KvGroupShape& group, const GroupPages& pages);

// The same in bytes of all groups.
size_t HeldBytes(const KvShape& shape, uint32_t length, uint32_t shared = 0);
size_t StepBytes(const KvShape& shape, uint32_t begin, uint32_t end);

// The step in which a sequence that grows to `length` tokens, token by token, has most: it computes
// tokens [begin, end). begin == end: it has most when it has ended. Requires: shared <= length.
struct LargestStep {
  uint32_t begin = 0, end = 0;
};
LargestStep FindLargestStep(const KvShape& shape, uint32_t length, uint32_t shared = 0);

// The least budget in which a sequence can grow to `length` tokens, token by token.
size_t LeastBytes(const KvShape& shape, uint32_t length, uint32_t shared = 0);

}  // namespace quire
