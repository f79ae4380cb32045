// SPDX-License-Identifier: Apache-2.0
// One training at a time in a run folder.
#pragma once

#include <filesystem>
#include <string_view>

namespace fovea {

/// Stands in the folder while a run is at work there, and after one that was killed.
inline constexpr std::string_view kLockName = "run.lock";

/// Holds flock(2) on `folder`/run.lock, with the process id inside, until it is destroyed or the
/// process ends, however that comes about. Advisory: readers need none and are not kept out. Where
/// the file system knows no locks, it keeps nobody out.
class RunLock {
 public:
  /// The folder exists. Throws kOutputExists, which names the process, if another one holds it;
  /// kWrite.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Whether the folder is still the one that was locked, and not another of its name.
  bool is_in_place() const;

 private:
  const std::filesystem::path path_;
  int file_ = -1;
};

/// Throws kOutputExists as above if another process, or another RunLock of this one, holds the
/// folder. Writes nothing.
void require_unlocked(const std::filesystem::path& folder);

}  // namespace fovea
