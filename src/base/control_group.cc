#include "base/control_group.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace quire {
namespace {

namespace fs = std::filesystem;

// The first number of a file; nothing if there is none ("max", "-1", no such file).
std::optional<uint64_t> ReadNumber(const fs::path& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return static_cast<uint64_t>(value);
}

// The number on the line that starts with `name`; 0 if there is none.
uint64_t ReadField(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  uint64_t value = 0;
  while (file >> word >> value)
    if (word == name) return value;
  return 0;
}

// Files of a group, as its version names them.
struct MemoryFiles {
  std::vector<const char*> limits;
  const char* used;
  const char* cached;  // in memory.stat: pages of files not used of late, which can be dropped
};

const MemoryFiles kMemoryFiles2 = {
    {"memory.max", "memory.high"}, "memory.current", "inactive_file"};
const MemoryFiles kMemoryFiles1 = {
    {"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"};

template <class T>
void Lower(std::optional<T>& least, T value) {
  least = least.has_value() ? std::min(*least, value) : value;
}

void ReadMemory(const fs::path& group, const MemoryFiles& files, ControlGroupLimits& limits) {
  const auto used = ReadNumber(group / files.used);
  if (!used.has_value()) return;
  const uint64_t busy = *used - std::min(*used, ReadField(group / "memory.stat", files.cached));
  for (const char* name : files.limits) {
    const auto limit = ReadNumber(group / name);
    // Version 1 writes "no limit" as a number near 2^63.
    if (!limit.has_value() || *limit >= uint64_t{1} << 60) continue;
    Lower(limits.memory_bytes, *limit > busy ? *limit - busy : 0);
  }
}

void LowerCores(double quota, double period, ControlGroupLimits& limits) {
  if (quota > 0 && period > 0) Lower(limits.cores, quota / period);
}

void ReadCores2(const fs::path& group, ControlGroupLimits& limits) {
  std::ifstream file(group / "cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period) LowerCores(quota, period, limits);
}

void ReadCores1(const fs::path& group, ControlGroupLimits& limits) {
  const auto quota = ReadNumber(group / "cpu.cfs_quota_us");
  const auto period = ReadNumber(group / "cpu.cfs_period_us");
  if (quota.has_value() && period.has_value())
    LowerCores(static_cast<double>(*quota), static_cast<double>(*period), limits);
}

// The folders of the group `path` ("/a/b") and of those around it, below `mount`. Inside a
// container the path may be the host's: what is not there reads as no limit, and the root is the
// container's own group.
std::vector<fs::path> GroupsAround(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> groups;
  fs::path group = fs::path(path).relative_path().lexically_normal();
  if (group.has_relative_path() && *group.begin() == "..") group.clear();  // outside the namespace
  for (; !group.empty() && group != "."; group = group.parent_path())
    groups.push_back(mount / group);
  groups.push_back(mount);
  return groups;
}

bool HasController(const std::string& list, const std::string& name) {
  std::istringstream controllers(list);
  std::string controller;
  while (std::getline(controllers, controller, ','))
    if (controller == name) return true;
  return false;
}

}  // namespace

ControlGroupLimits ReadControlGroupLimits(const std::string& root) {
  ControlGroupLimits limits;
  const fs::path mount = root + "/sys/fs/cgroup";
  std::ifstream file(root + "/proc/self/cgroup");
  // "0::/user.slice/a.scope", or "4:memory:/docker/1f" for each hierarchy of version 1.
  std::string id, controllers, path;
  while (std::getline(file, id, ':') && std::getline(file, controllers, ':') &&
         std::getline(file, path)) {
    if (controllers.empty()) {
      for (const fs::path& group : GroupsAround(mount, path)) {
        ReadMemory(group, kMemoryFiles2, limits);
        ReadCores2(group, limits);
      }
      continue;
    }
    if (HasController(controllers, "memory"))
      for (const fs::path& group : GroupsAround(mount / "memory", path))
        ReadMemory(group, kMemoryFiles1, limits);
    if (HasController(controllers, "cpu"))
      for (const fs::path& group : GroupsAround(mount / "cpu", path)) ReadCores1(group, limits);
  }
  return limits;
}

}  // namespace quire
