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

// The number on the line of `path` that starts with `name`; 0 if there is none.
uint64_t ReadField(const char* path, const char* name) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return 0;
  char line[256], word[128];
  unsigned long long value = 0, found = 0;
  while (std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, "%127s %llu", word, &value) == 2 && std::strcmp(word, name) == 0)
      found = value;
  std::fclose(file);
  return found;
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
  uint64_t available = ReadField("/proc/meminfo", "MemAvailable:") * 1024;
  // Version 2 of control groups, then version 1. Pages of files that nobody maps can be dropped.
  const struct {
    const char *limit, *used, *stat, *cached;
  } groups[] = {
      {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat",
       "inactive_file"},
      {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
       "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file"}};
  for (const auto& group : groups) {
    const auto limit = ReadNumber(group.limit), used = ReadNumber(group.used);
    if (!limit.has_value() || !used.has_value()) continue;
    const uint64_t busy = *used - std::min(*used, ReadField(group.stat, group.cached));
    const uint64_t left = *limit > busy ? *limit - busy : 0;
    available = available == 0 ? left : std::min(available, left);
  }
  return available;
}

}  // namespace quire
