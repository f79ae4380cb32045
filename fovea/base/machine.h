// SPDX-License-Identifier: Apache-2.0
// What this process runs on: processor, caches, memory and its limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// Processors that the cgroups of this process allow, or a part of one; infinity if none says so.
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
  std::int64_t bytes;  ///< what this process may still take, without swapping
  std::string reason;  ///< what sets the limit: "free memory", "cgroup limit" or "ulimit -v"
};

/// The smallest of free memory, what is left of every cgroup limit above this process, and what is
/// left of RLIMIT_AS.
MemoryLimit available_memory();

/// The same with what this process holds already: all that it may have.
MemoryLimit reachable_memory();

/// Throws kOutOfMemory unless `bytes` can still be taken: "`what` would take ...", and the hint.
void require_memory(std::string_view what, double bytes, std::string_view hint);

/// From now on memory of 1 MiB or more that this process frees goes back to the system at once. The
/// allocator of the C library would keep much of it for later, and then a program holds more than
/// it has allocated. For programs to call first, not for libraries.
void return_freed_memory();

/// All memory of the machine; 0 where the system does not tell.
std::int64_t total_memory_bytes();

/// The limit of this process's cgroup or of one above it, whichever is lowest; 0: none.
std::int64_t cgroup_memory_limit_bytes();

/// The memory that this process has resident now, and the most that it has had so far.
std::int64_t resident_memory_bytes();
std::int64_t peak_memory_bytes();

}  // namespace fovea
