// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

#include "fovea/base/system_files.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// Version 1 writes "no limit" as the largest number of whole pages.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

// A hierarchy of groups: of one controller in version 1; of version 2 if `controller` is empty.
struct Hierarchy {
  std::string_view controller;
  fs::path mount_point;
  fs::path mounted;  // the group that is seen at the mount point
};

// The group of this process in a hierarchy, from lines such as "4:cpu,cpuacct:/a/b" and "0::/a/b".
fs::path own_group(const fs::path& root, std::string_view controller) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool meant =
        controller.empty() ? controllers.empty() : has_word(controllers, ',', controller);
    if (meant) return line.substr(second + 1);
  }
  return "/";
}

// Where the hierarchy is mounted. A line of mountinfo: "36 35 98:0 /mounted /mount/point options -
// type source options"; a hierarchy of version 1 has its controllers among the last options.
std::optional<Hierarchy> find_hierarchy(const fs::path& root, std::string_view controller) {
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, mounted, point, type, source, options;
    before >> id >> parent >> device >> mounted >> point;
    after >> type >> source >> options;
    const bool meant = controller.empty() ? type == "cgroup2"
                                          : type == "cgroup" && has_word(options, ',', controller);
    if (meant) return Hierarchy{controller, root / fs::path(point).relative_path(), mounted};
  }
  return std::nullopt;
}

// The folders of this process's group and of its parents. Only the mount point, if the group does
// not lie below the mounted one: a container may see its own group as the top.
std::vector<fs::path> folders_of(const fs::path& root, std::string_view controller) {
  const std::optional<Hierarchy> hierarchy = find_hierarchy(root, controller);
  if (!hierarchy) return {};
  std::vector<fs::path> folders;
  fs::path below = own_group(root, controller).lexically_relative(hierarchy->mounted);
  if (!below.empty() && *below.begin() != ".." && below != ".") {
    for (; !below.empty(); below = below.parent_path()) {
      folders.push_back(hierarchy->mount_point / below);
    }
  }
  folders.push_back(hierarchy->mount_point);
  return folders;
}

struct MemoryFiles {
  std::string_view limit, used, droppable;
};
constexpr MemoryFiles kMemory1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr MemoryFiles kMemory2{"memory.max", "memory.current", "inactive_file"};

}  // namespace

Cgroups::Cgroups(const fs::path& root)
    : unified_(folders_of(root, "")),
      memory_(folders_of(root, "memory")),
      cpu_(folders_of(root, "cpu")) {}

double Cgroups::processors() const {
  double lowest = std::numeric_limits<double>::infinity();
  const auto limit = [&](double used, double period) {
    if (used > 0 && period > 0) lowest = std::min(lowest, used / period);
  };
  for (const fs::path& folder : unified_) {
    // "max 100000" or "200000 100000": the time allowed in each period, and the period, in
    // microseconds.
    std::ifstream file(folder / "cpu.max");
    double used = 0, period = 0;
    if (file >> used >> period) limit(used, period);
  }
  for (const fs::path& folder : cpu_) {
    limit(static_cast<double>(file_number(folder / "cpu.cfs_quota_us")),
          static_cast<double>(file_number(folder / "cpu.cfs_period_us")));
  }
  return lowest;
}

std::vector<Cgroups::Memory> Cgroups::memories() const {
  std::vector<Memory> found;
  const auto look = [&](const Folders& folders, const MemoryFiles& files) {
    for (const fs::path& folder : folders) {
      const std::int64_t limit = file_number(folder / files.limit);
      if (limit < 0 || limit >= kNoLimit) continue;
      const std::int64_t used = file_number(folder / files.used);
      const std::int64_t droppable =
          leading_number(line_value(folder / "memory.stat", files.droppable));
      const std::int64_t kept = std::max<std::int64_t>(used - droppable, 0);
      found.push_back({limit, std::max<std::int64_t>(limit - kept, 0)});
    }
  };
  look(unified_, kMemory2);
  look(memory_, kMemory1);
  return found;
}

std::optional<std::int64_t> Cgroups::memory_limit() const {
  std::optional<std::int64_t> lowest;
  for (const Memory& memory : memories()) {
    if (!lowest || memory.limit < *lowest) lowest = memory.limit;
  }
  return lowest;
}

std::optional<std::int64_t> Cgroups::memory_left() const {
  std::optional<std::int64_t> lowest;
  for (const Memory& memory : memories()) {
    if (!lowest || memory.left < *lowest) lowest = memory.left;
  }
  return lowest;
}

}  // namespace fovea
