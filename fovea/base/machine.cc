// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/machine.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "fovea/base/cgroup.h"
#include "fovea/base/check.h"
#include "fovea/base/size_text.h"
#include "fovea/base/system_files.h"

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

}  // namespace fovea
