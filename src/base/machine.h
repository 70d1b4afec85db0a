// What this process may use of the machine: cores and memory, cut to the control groups' limits.
#pragma once

#include <cstdint>
#include <string>

namespace quire {

// Cores: the affinity mask, cut to the control groups' quota (rounded up); at least 1.
int UsableCores();

struct FreeMemory {
  uint64_t bytes = 0;       // that could be taken now without swapping; 0: not known
  std::string source = {};  // what sets it: "free on this machine now"
};

// The kernel's estimate, cut to what the control groups leave.
FreeMemory ReadFreeMemory();

}  // namespace quire
