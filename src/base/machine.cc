#include "base/machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <thread>

namespace quire {
namespace {

// The first number in a file of the kernel's; nothing if there is none ("max", no such file).
std::optional<uint64_t> ReadNumber(const char* path) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return std::nullopt;
  unsigned long long value = 0;
  const bool found = std::fscanf(file, "%llu", &value) == 1;
  std::fclose(file);
  if (!found) return std::nullopt;
  return value;
}

// The CPU quota of the control group in cores, if there is one.
std::optional<double> QuotaCores() {
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    double quota = 0, period = 0;
    const bool limited = std::fscanf(file, "%lf %lf", &quota, &period) == 2 && period > 0;
    std::fclose(file);
    if (limited) return quota / period;
    return std::nullopt;
  }
  const auto quota = ReadNumber("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");  // "-1" reads as no limit
  const auto period = ReadNumber("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (quota.has_value() && period.value_or(0) > 0 && *quota < (uint64_t{1} << 40))
    return static_cast<double>(*quota) / static_cast<double>(*period);
  return std::nullopt;
}

}  // namespace

int UsableCores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) cores = CPU_COUNT(&mask);
  if (const auto quota = QuotaCores())
    cores = static_cast<int>(std::min<double>(cores, std::ceil(*quota)));
  return std::max(cores, 1);
}

uint64_t AvailableMemoryBytes() {
  uint64_t available = 0;
  if (std::FILE* file = std::fopen("/proc/meminfo", "r")) {
    char line[256];
    unsigned long long kib = 0;
    while (std::fgets(line, sizeof line, file) != nullptr)
      if (std::sscanf(line, "MemAvailable: %llu", &kib) == 1) available = kib * 1024;
    std::fclose(file);
  }
  const auto limit = ReadNumber("/sys/fs/cgroup/memory.max");
  const auto used = ReadNumber("/sys/fs/cgroup/memory.current");
  if (limit.has_value() && used.has_value()) {
    const uint64_t left = *limit > *used ? *limit - *used : 0;
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

}  // namespace quire
