// SPDX-License-Identifier: Apache-2.0
// The machine that this process runs on: processor, caches, memory and its limits.
// Limits are also those that control groups set: version 1, version 2, or both at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// The number of processors that the cgroups of this process allow, possibly a fraction; infinity
/// if there is no limit.
double processor_quota();

/// The processor's own name ("AMD EPYC 9R14"); "unknown" where the system does not tell.
std::string processor_name();

struct Cache {
  int level;
  std::string kind;  ///< "Data", "Instruction" or "Unified"
  std::int64_t bytes;
  int shared_by;  ///< logical processors
};

/// The caches of the first processor, as the system lists them; empty where it does not.
std::vector<Cache> caches();

struct MemoryLimit {
  std::int64_t bytes;  ///< memory that this process may still take, without swapping
  std::string reason;  ///< the origin of the limit: "free memory", "cgroup limit" or "ulimit -v"
};

/// The smallest of: free memory, the memory left under each cgroup limit that applies to this
/// process, and the memory left under RLIMIT_AS.
MemoryLimit available_memory();

/// available_memory() plus the memory that this process holds: all that it may ever hold.
MemoryLimit reachable_memory();

/// Throws kOutOfMemory with this hint unless `bytes` can still be taken. The message begins "`what`
/// would take ...".
void require_memory(std::string_view what, double bytes, std::string_view hint);

/// Asks for the memory of what grows while it is made, and whose size is not known beforehand.
class GrowingMemory {
 public:
  /// Both must outlive it: what is told in the message, and its hint.
  GrowingMemory(std::string_view what, std::string_view hint) : what_(what), hint_(hint) {}

  /// Throws kOutOfMemory unless as much again can be taken. Looks each time that the bytes have
  /// doubled, from 64 MiB on: of less it costs a comparison.
  void grow_to(double bytes) {
    if (bytes >= next_) ask(bytes);
  }

 private:
  void ask(double bytes);

  std::string_view what_, hint_;
  double next_ = 64 << 20;
};

/// From now on memory of 1 MiB or more that this process frees goes back to the system at once. By
/// default the allocator of the C library keeps much of it for later, so that a program holds more
/// than it has allocated. A program calls this first thing; a library should not.
void return_freed_memory();

/// All memory of the machine; 0 where the system does not tell.
std::int64_t total_memory_bytes();

/// The lowest memory limit among this process's cgroup and its parents; 0: none.
std::int64_t cgroup_memory_limit_bytes();

/// The resident memory of this process: now, and at its highest so far.
std::int64_t resident_memory_bytes();
std::int64_t peak_memory_bytes();

/// The groups of this process and their parents, as far as this process can see them. Inside a
/// container that is often the container's own group alone.
class Cgroups {
 public:
  /// `root` is put before every path that is read, so that a test can supply files of its own.
  explicit Cgroups(const std::filesystem::path& root = "/");

  /// The lowest limit of processors, possibly a fraction; infinity if no group sets a limit.
  double processors() const;
  /// The lowest limit of memory, in bytes; nothing if no group sets one.
  std::optional<std::int64_t> memory_limit() const;
  /// The least memory, in bytes, that is left under any of the limits. File pages that the kernel
  /// drops when memory runs short count as free.
  std::optional<std::int64_t> memory_left() const;

 private:
  struct Memory {
    std::int64_t limit, left;
  };
  std::vector<Memory> memories() const;

  using Folders = std::vector<std::filesystem::path>;
  Folders unified_, memory_, cpu_;  // of version 2; of version 1's two controllers
};

/// The number that a text begins with; 0 if it begins with none.
std::int64_t leading_number(const std::string& text);

/// The number that a file holds; -1 if it holds a word ("max") or cannot be read.
std::int64_t file_number(const std::filesystem::path& path);

/// The text after `key` (and a colon, and spaces) on the first line that begins with it; empty if
/// there is no such line.
std::string line_value(const std::filesystem::path& path, std::string_view key);

}  // namespace fovea
