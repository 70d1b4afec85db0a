#include "base/control_group.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace quire {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// A folder that looks like a machine's root.
class ControlGroupTest : public testing::Test {
 protected:
  ControlGroupTest() {
    std::string name = testing::TempDir() + "control_group_XXXXXX";
    root_ = mkdtemp(name.data());
  }
  ~ControlGroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  // Of version 2: what a group says of itself.
  void WriteMemory(const std::string& group, const std::string& limit, uint64_t used) {
    Write("/sys/fs/cgroup" + group + "/memory.max", limit + "\n");
    Write("/sys/fs/cgroup" + group + "/memory.current", std::to_string(used) + "\n");
  }
  ControlGroupLimits Read() const { return ReadControlGroupLimits(root_); }

  std::string root_;
};

TEST_F(ControlGroupTest, NoGroupIsNoLimit) {
  EXPECT_FALSE(Read().cores.has_value());
  EXPECT_FALSE(Read().memory_bytes.has_value());
  Write("/proc/self/cgroup", "0::/\n");
  WriteMemory("", "max", kMiB);
  Write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(Read().cores.has_value());
  EXPECT_FALSE(Read().memory_bytes.has_value());
}

// PLN-07: a container of 512 MiB. Its own group is the root of what it sees.
TEST_F(ControlGroupTest, AContainersLimitLessWhatIsUsed) {
  Write("/proc/self/cgroup", "0::/\n");
  WriteMemory("", std::to_string(512 * kMiB), 100 * kMiB);
  Write("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(Read().memory_bytes, 412 * kMiB);
  EXPECT_EQ(Read().cores, 1.5);
  // The cache of files that nobody maps can go.
  Write("/sys/fs/cgroup/memory.stat",
        "anon 41943040\nfile 62914560\ninactive_file 62914560\nactive_file 7\n");
  EXPECT_EQ(Read().memory_bytes, 472 * kMiB);
  // Full: nothing is left, and no less.
  WriteMemory("", std::to_string(512 * kMiB), 600 * kMiB);
  EXPECT_EQ(Read().memory_bytes, 0u);
}

TEST_F(ControlGroupTest, TheTightestGroupAroundCounts) {
  Write("/proc/self/cgroup", "0::/user.slice/user-1.slice/run-3.scope\n");
  WriteMemory("/user.slice/user-1.slice/run-3.scope", std::to_string(512 * kMiB), 12 * kMiB);
  EXPECT_EQ(Read().memory_bytes, 500 * kMiB);
  WriteMemory("/user.slice/user-1.slice", std::to_string(1024 * kMiB), 1000 * kMiB);
  EXPECT_EQ(Read().memory_bytes, 24 * kMiB);
  Write("/sys/fs/cgroup/user.slice/memory.high", std::to_string(10 * kMiB));
  Write("/sys/fs/cgroup/user.slice/memory.current", std::to_string(4 * kMiB));
  EXPECT_EQ(Read().memory_bytes, 6 * kMiB);
  Write("/sys/fs/cgroup/user.slice/cpu.max", "300000 100000");
  Write("/sys/fs/cgroup/user.slice/user-1.slice/cpu.max", "200000 100000");
  Write("/sys/fs/cgroup/user.slice/user-1.slice/run-3.scope/cpu.max", "max 100000");
  EXPECT_EQ(Read().cores, 2.0);
}

TEST_F(ControlGroupTest, VersionOneHasAHierarchyForEachController) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/docker/1f\n4:memory:/docker/1f\n3:cpuset:/\n0::/\n");
  const std::string memory = "/sys/fs/cgroup/memory", cpu = "/sys/fs/cgroup/cpu";
  // The container's own group stands at the mount's root; the path is the host's.
  Write(memory + "/memory.limit_in_bytes", std::to_string(512 * kMiB));
  Write(memory + "/memory.usage_in_bytes", std::to_string(100 * kMiB));
  Write(memory + "/memory.stat", "cache 9\ntotal_inactive_file 1048576\n");
  Write(cpu + "/cpu.cfs_quota_us", "50000\n");
  Write(cpu + "/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read().memory_bytes, 413 * kMiB);
  EXPECT_EQ(Read().cores, 0.5);
  // Seen from the host, the group is below the root, and the root has no limit.
  Write(memory + "/docker/1f/memory.limit_in_bytes", std::to_string(256 * kMiB));
  Write(memory + "/docker/1f/memory.usage_in_bytes", "0\n");
  Write(memory + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read().memory_bytes, 256 * kMiB);
  Write(cpu + "/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(Read().cores.has_value());
}

TEST_F(ControlGroupTest, OddFilesAreNoLimit) {
  for (const std::string text : {"", "0::", "x", "0::/../../etc\n", "0::\n4:memory\n", ":::::\n"}) {
    Write("/proc/self/cgroup", text);
    Write("/sys/fs/cgroup/cpu.max", "0 0\n");
    WriteMemory("", "many", 1);
    EXPECT_FALSE(Read().cores.has_value()) << text;
    EXPECT_FALSE(Read().memory_bytes.has_value()) << text;
  }
}

}  // namespace
}  // namespace quire
