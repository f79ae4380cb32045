// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/machine.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>

namespace fovea {

namespace {

namespace fs = std::filesystem;

// The text after "key" (and a colon, and spaces) on the first line that begins with it.
std::string line_value(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const std::size_t begin = line.find_first_not_of(": \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

// The number that a file holds; -1 for "max" and for a file that cannot be read.
std::int64_t file_number(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t number = -1;
  return file >> number ? number : -1;
}

std::int64_t leading_number(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t number = 0;
  return stream >> number ? number : 0;
}

std::int64_t memory_kib(std::string_view key) {
  return leading_number(line_value("/proc/meminfo", key));
}

// The folders of this process's cgroup (version 2) and of those above it.
std::vector<fs::path> cgroup_folders() {
  const fs::path root = "/sys/fs/cgroup";
  std::vector<fs::path> folders;
  fs::path below = fs::path(line_value("/proc/self/cgroup", "0:")).relative_path();
  for (; !below.empty(); below = below.parent_path()) folders.push_back(root / below);
  folders.push_back(root);
  return folders;
}

// File pages that can be dropped at once are not in the way.
std::int64_t cgroup_room(const fs::path& folder, std::int64_t limit) {
  const std::int64_t current = std::max<std::int64_t>(file_number(folder / "memory.current"), 0);
  const std::int64_t reclaimable =
      leading_number(line_value(folder / "memory.stat", "inactive_file"));
  return std::max<std::int64_t>(limit - std::max<std::int64_t>(current - reclaimable, 0), 0);
}

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

double processor_quota() {
  double quota = std::numeric_limits<double>::infinity();
  for (const fs::path& folder : cgroup_folders()) {
    // "max 100000" or "200000 100000": of each period, in microseconds.
    std::ifstream file(folder / "cpu.max");
    double used = 0, period = 0;
    if (file >> used >> period && period > 0) quota = std::min(quota, used / period);
  }
  return quota;
}

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
  for (const fs::path& folder : cgroup_folders()) {
    const std::int64_t limit = file_number(folder / "memory.max");
    if (limit < 0) continue;
    const std::int64_t room = cgroup_room(folder, limit);
    if (room < lowest.bytes) lowest = {room, "cgroup limit"};
  }
  struct rlimit address_space {};
  if (::getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    const std::int64_t used = file_number("/proc/self/statm") * ::sysconf(_SC_PAGESIZE);
    const auto limit = static_cast<std::int64_t>(address_space.rlim_cur);
    const std::int64_t room = std::max<std::int64_t>(limit - used, 0);
    if (room < lowest.bytes) lowest = {room, "ulimit -v"};
  }
  return lowest;
}

std::int64_t total_memory_bytes() { return memory_kib("MemTotal") << 10; }

std::int64_t cgroup_memory_limit_bytes() {
  std::int64_t lowest = 0;
  for (const fs::path& folder : cgroup_folders()) {
    const std::int64_t limit = file_number(folder / "memory.max");
    if (limit > 0 && (lowest == 0 || limit < lowest)) lowest = limit;
  }
  return lowest;
}

std::int64_t peak_memory_bytes() {
  struct rusage usage {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? std::int64_t{usage.ru_maxrss} << 10 : 0;
}

}  // namespace fovea
