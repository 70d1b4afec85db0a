// What the control groups around this process leave it: cores and memory. Both versions of them,
// and all groups from its own to the root, for each may have a limit of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace quire {

struct ControlGroupLimits {
  std::optional<double> cores;           // unset: no group has a quota
  std::optional<uint64_t> memory_bytes;  // left before the first limit is met; unset: no limit
};

// Of this process. `root` stands before /proc and /sys/fs/cgroup: a test gives a folder of its own.
// What can't be read is no limit.
//
// Source: the kernel's admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
ControlGroupLimits ReadControlGroupLimits(const std::string& root = "");

}  // namespace quire
