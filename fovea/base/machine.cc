// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/machine.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/words.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

std::int64_t memory_kib(std::string_view key) {
  return leading_number(line_value("/proc/meminfo", key));
}

std::int64_t status_kib(std::string_view key) {
  return leading_number(line_value("/proc/self/status", key));
}

// Free memory by sysconf: less than MemAvailable, which also counts caches that can be dropped.
std::int64_t free_pages_bytes() { return ::sysconf(_SC_AVPHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

// "32K", "1024K", "32M".
std::int64_t cache_bytes(const std::string& text) {
  const std::int64_t number = leading_number(text);
  const char unit = text.empty() ? ' ' : text.back();
  return unit == 'K' ? number << 10 : unit == 'M' ? number << 20 : number;
}

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0-1,4" names 3 processors.
int count_listed(const std::string& list) {
  int count = 0;
  std::istringstream stream(list);
  for (std::string range; std::getline(stream, range, ',');) {
    const std::size_t dash = range.find('-');
    const std::int64_t first = leading_number(range);
    const std::int64_t last =
        dash == std::string::npos ? first : leading_number(range.substr(dash + 1));
    count += static_cast<int>(last - first + 1);
  }
  return count;
}

}  // namespace

double processor_quota() { return Cgroups().processors(); }

std::string processor_name() {
  const std::string name = line_value("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::vector<Cache> caches() {
  std::vector<Cache> found;
  for (int i = 0;; ++i) {
    const fs::path folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i);
    const std::int64_t level = file_number(folder / "level");
    if (level < 0) return found;
    found.push_back({static_cast<int>(level), first_line(folder / "type"),
                     cache_bytes(first_line(folder / "size")),
                     count_listed(first_line(folder / "shared_cpu_list"))});
  }
}

MemoryLimit available_memory() {
  MemoryLimit lowest{memory_kib("MemAvailable") << 10, "free memory"};
  if (lowest.bytes == 0) lowest.bytes = free_pages_bytes();  // /proc cannot be read
  const std::optional<std::int64_t> left = Cgroups().memory_left();
  if (left && *left < lowest.bytes) lowest = {*left, "cgroup limit"};
  struct rlimit address_space {};
  if (::getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    const std::int64_t used = file_number("/proc/self/statm") * ::sysconf(_SC_PAGESIZE);
    const auto limit = static_cast<std::int64_t>(address_space.rlim_cur);
    const std::int64_t room = std::max<std::int64_t>(limit - used, 0);
    if (room < lowest.bytes) lowest = {room, "ulimit -v"};
  }
  return lowest;
}

MemoryLimit reachable_memory() {
  MemoryLimit memory = available_memory();
  memory.bytes += resident_memory_bytes();
  return memory;
}

void require_memory(std::string_view what, double bytes, std::string_view hint) {
  const MemoryLimit memory = available_memory();
  if (bytes <= static_cast<double>(memory.bytes)) return;
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{} would take {}; {} are available ({})", what, size_text(bytes),
                          size_text(memory.bytes), memory.reason),
              std::string(hint));
}

void GrowingMemory::ask(double bytes) {
  require_memory(what_, bytes, hint_);
  next_ = 2 * bytes;
}

void return_freed_memory() {
#if defined(M_MMAP_THRESHOLD)
  mallopt(M_MMAP_THRESHOLD, 1 << 20);  // setting it also stops glibc from raising it
#endif
}

std::int64_t total_memory_bytes() { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

std::int64_t cgroup_memory_limit_bytes() { return Cgroups().memory_limit().value_or(0); }

std::int64_t resident_memory_bytes() { return status_kib("VmRSS") << 10; }

// Not ru_maxrss: a child process inherits it from its parent.
std::int64_t peak_memory_bytes() { return status_kib("VmHWM") << 10; }

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

std::int64_t leading_number(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t number = 0;
  return stream >> number ? number : 0;
}

std::int64_t file_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t number = -1;
  return file >> number ? number : -1;
}

std::string line_value(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(": \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

}  // namespace fovea
