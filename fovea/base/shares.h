// SPDX-License-Identifier: Apache-2.0
// Which thread of a job runs which items.
#pragma once

#include <array>
#include <atomic>

#include "fovea/base/types.h"

namespace fovea {

/// The items of a job in as many ranges, its shares, as threads may run it. A thread begins with
/// the same share in every job that has as many, so what it wrote in one job is in its own cache
/// for the next. Then it takes items that are left in the shares of others.
class Shares {
 public:
  Shares(index items, int threads);

  int size() const { return size_; }

  /// The share that the calling thread begins with: no other thread's, unless there are more
  /// threads than shares. To be called once by each thread.
  int own();

  /// The next item of a share, or -1 if none is left.
  index take(int share);

  bool any_left() const;

 private:
  struct alignas(64) Share {  // a cache line each
    std::atomic<index> next{0};
    index end = 0;
    std::atomic<bool> owned{false};
  };

  // More threads than these have some shares in common.
  static constexpr int kMost = 64;

  int size_;
  std::array<Share, kMost> shares_;
};

}  // namespace fovea
