// SPDX-License-Identifier: Apache-2.0
// Threads of another library, to work in place of the pool's.
#pragma once

namespace fovea {

/// The threads of a library that a program calls in turns with ours. They spin for a while after
/// their own work (those of OpenMP for milliseconds) on the cores that ours would want.
class Team {
 public:
  Team() = default;
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  /// Whether it is of this size, for the calling thread; if not, the pool works.
  virtual bool is_of(int threads) const = 0;

  /// Calls work(data, thread) once on each of up to `threads` threads, the caller among them, and
  /// returns when all these calls have returned. `thread` is below `threads` and another on each,
  /// the same for a thread in every call. `work` throws nothing.
  virtual void run(int threads, void (*work)(void* data, int thread), void* data) const = 0;
};

}  // namespace fovea
