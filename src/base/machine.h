// What this process may use of the machine: cores and memory, cut to the control group's limits.
#pragma once

#include <cstdint>

namespace quire {

// Cores: the affinity mask, cut to the control group's quota (rounded up); at least 1.
int UsableCores();

// Bytes that could be taken now without swapping: the kernel's estimate, cut to what the control
// group has left; 0 if neither is known.
uint64_t AvailableMemoryBytes();

}  // namespace quire
