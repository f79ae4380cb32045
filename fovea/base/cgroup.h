// SPDX-License-Identifier: Apache-2.0
// The limits that control groups set to this process: version 1, version 2, or both at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace fovea {

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

}  // namespace fovea
