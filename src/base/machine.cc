#include "base/machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "base/control_group.h"

namespace quire {
namespace {

// 0 if the kernel does not tell.
uint64_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");  // "MemAvailable:   12345 kB"
  std::string name;
  uint64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace

int UsableCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  if (const auto quota = ReadControlGroupLimits().cores)
    cores = static_cast<int>(std::min<double>(cores, std::ceil(*quota)));
  return std::max(cores, 1);
}

FreeMemory ReadFreeMemory() {
  FreeMemory free{.bytes = AvailableBytes(), .source = "free on this machine now"};
  const auto left = ReadControlGroupLimits().memory_bytes;
  if (left.has_value() && (free.bytes == 0 || *left < free.bytes))
    free = {.bytes = *left, .source = "left by the limit of the control group (container)"};
  return free;
}

}  // namespace quire
