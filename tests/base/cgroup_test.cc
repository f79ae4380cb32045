// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "fovea/base/machine.h"
#include "tests/support/folder.h"

namespace fovea {
namespace {

constexpr double kAll = std::numeric_limits<double>::infinity();

// A machine as the files of /proc and /sys describe it.
class CgroupTest : public testing::Test {
 protected:
  void write(std::string_view path, std::string_view text) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void write_mounts(std::string_view lines) const {
    write("proc/self/mountinfo", fmt::format("23 1 8:1 / / rw - ext4 /dev/root rw\n{}", lines));
  }
  void write_memory1(const std::string& group, std::string_view limit, std::string_view used,
                     std::string_view droppable) const {
    write(group + "/memory.limit_in_bytes", limit);
    write(group + "/memory.usage_in_bytes", used);
    write(group + "/memory.stat",
          fmt::format("cache 5\ninactive_file 1\ntotal_inactive_file {}\n", droppable));
  }
  Cgroups groups() const { return Cgroups(folder_.path()); }

 private:
  TestFolder folder_;
};

constexpr std::string_view kMounts1 =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n"
    "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    "37 31 0:34 / /sys/fs/cgroup/cpuset rw,nosuid - cgroup cgroup rw,cpuset\n";
constexpr std::string_view kNoLimit1 = "9223372036854771712\n";

TEST_F(CgroupTest, WithoutGroupsThereAreNoLimits) {
  EXPECT_EQ(groups().processors(), kAll);
  EXPECT_EQ(groups().memory_limit(), std::nullopt);
  EXPECT_EQ(groups().memory_left(), std::nullopt);
}

TEST_F(CgroupTest, Version2) {
  write_mounts("30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/user.slice/job\n");
  const std::string top = "sys/fs/cgroup/user.slice";
  write(top + "/memory.max", "4000\n");
  write(top + "/memory.current", "3500\n");
  write(top + "/memory.stat", "anon 1\ninactive_file 300\n");
  write(top + "/job/memory.max", "max\n");
  write(top + "/job/cpu.max", "250000 100000\n");
  write(top + "/cpu.max", "max 100000\n");
  EXPECT_EQ(groups().memory_limit(), 4000);
  EXPECT_EQ(groups().memory_left(), 800);
  EXPECT_EQ(groups().processors(), 2.5);
}

TEST_F(CgroupTest, Version1) {
  write_mounts(kMounts1);
  write("proc/self/cgroup", "9:cpuset:/\n4:memory:/jobs/a:b\n2:cpu,cpuacct:/jobs\n");
  const std::string memory = "sys/fs/cgroup/memory", cpu = "sys/fs/cgroup/cpu,cpuacct";
  write_memory1(memory, kNoLimit1, "900000", "0");
  write_memory1(memory + "/jobs", "9000", "2000", "0");
  write_memory1(memory + "/jobs/a:b", "5000", "4000", "1500");
  write(cpu + "/cpu.cfs_quota_us", "-1\n");
  write(cpu + "/cpu.cfs_period_us", "100000\n");
  write(cpu + "/jobs/cpu.cfs_quota_us", "150000\n");
  write(cpu + "/jobs/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups().memory_limit(), 5000);
  EXPECT_EQ(groups().memory_left(), 2500);
  EXPECT_EQ(groups().processors(), 1.5);
}

TEST_F(CgroupTest, Version1WithoutLimits) {
  write_mounts(kMounts1);
  write("proc/self/cgroup", "4:memory:/\n2:cpu,cpuacct:/\n");
  write_memory1("sys/fs/cgroup/memory", kNoLimit1, "900000", "0");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups().memory_limit(), std::nullopt);
  EXPECT_EQ(groups().processors(), kAll);
}

// Version 2 is mounted for systemd alone; the controllers belong to version 1.
TEST_F(CgroupTest, BothVersions) {
  write_mounts(
      fmt::format("{}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", kMounts1));
  write("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/job\n0::/job\n");
  write("sys/fs/cgroup/unified/job/cgroup.procs", "1\n");
  write_memory1("sys/fs/cgroup/memory/job", "7000", "1000", "0");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(groups().memory_left(), 6000);
  EXPECT_EQ(groups().processors(), 0.5);
}

// In a container the process is told the path of its group from the host's top, but sees that group
// alone, mounted where the top would be.
TEST_F(CgroupTest, OfAContainerAreAtTheMountPoint) {
  for (const std::string_view mounted : {"/docker/0123", "/"}) {
    write_mounts(
        fmt::format("35 31 0:32 {} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n", mounted));
    write("proc/self/cgroup", "4:memory:/docker/0123\n");
    write_memory1("sys/fs/cgroup/memory", "3000", "1000", "100");
    EXPECT_EQ(groups().memory_limit(), 3000) << mounted;
    EXPECT_EQ(groups().memory_left(), 2100) << mounted;
  }
}

TEST_F(CgroupTest, OutsideTheMountedGroupAreAtTheMountPoint) {
  write_mounts("30 23 0:26 /../../job /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/../other\n");
  write("sys/fs/cgroup/memory.max", "3000\n");
  EXPECT_EQ(groups().memory_left(), 3000);
}

TEST_F(CgroupTest, UsedUpMemoryLeavesNothing) {
  write_mounts("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "3000\n");
  write("sys/fs/cgroup/memory.current", "4000\n");
  EXPECT_EQ(groups().memory_left(), 0);
}

}  // namespace
}  // namespace fovea
