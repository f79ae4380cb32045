// SPDX-License-Identifier: Apache-2.0
// Allows one training at a time in a run folder.
#pragma once

#include <filesystem>
#include <string_view>

namespace fovea {

/// The file that is in the folder while a run trains there, and after a run that was killed.
inline constexpr std::string_view kLockName = "run.lock";

/// Holds flock(2) on `folder`/run.lock, which contains the process id, until it is destroyed or the
/// process ends or is killed. The lock is advisory: readers need none. On a file system without
/// locks it has no effect.
class RunLock {
 public:
  /// The folder must exist. Throws kOutputExists, which names the process, if another one holds the
  /// lock; kWrite.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// Whether the path still leads to the folder that was locked, and not to another one of the same
  /// name.
  bool is_in_place() const;

 private:
  const std::filesystem::path path_;
  int file_ = -1;
};

/// Throws kOutputExists as above if another process, or a RunLock of this process, holds the lock.
/// Writes nothing.
void require_unlocked(const std::filesystem::path& folder);

}  // namespace fovea
