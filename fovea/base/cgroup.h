// SPDX-License-Identifier: Apache-2.0
// What control groups allow this process: version 1, version 2, or both at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace fovea {

/// The groups of this process and those above them, as far as they can be seen from here: inside a
/// container that is often the container's own group alone.
class Cgroups {
 public:
  /// `root` stands before every path that is read: a test puts files of its own there.
  explicit Cgroups(const std::filesystem::path& root = "/");

  /// Processors, or a part of one; infinity where no group sets a limit.
  double processors() const;
  /// The lowest limit of memory, in bytes.
  std::optional<std::int64_t> memory_limit() const;
  /// What is left of the limit that is nearest to being reached. File pages that the kernel drops
  /// as soon as memory is short count as free.
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
