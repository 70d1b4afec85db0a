// Counts the heap allocations of a test program, for tests of "allocates nothing after warm-up".
//
// A test program that lists base/allocation_count.cc among its sources has every operator new
// counted, on the thread that calls it. No other program may: it replaces the global operators.
#pragma once

#include <cstdint>

namespace quire {

// Calls of operator new on this thread so far.
uint64_t AllocationCount();

}  // namespace quire
