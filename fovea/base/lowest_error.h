// SPDX-License-Identifier: Apache-2.0
// One exception of items that run at once.
#pragma once

#include <atomic>
#include <exception>
#include <limits>
#include <mutex>

#include "fovea/base/types.h"

namespace fovea {

/// The exception of the lowest item that throws, whichever throws first: the one that a plain loop
/// over the items would have thrown.
class LowestError {
 public:
  /// Could `item` still throw what is kept in the end? If not, it need not run.
  bool concerns(index item) const { return item < item_.load(std::memory_order_relaxed); }

  /// Keeps the exception that is being handled, which `item` threw.
  void keep(index item) {
    const std::lock_guard lock(mutex_);
    if (!concerns(item)) return;
    error_ = std::current_exception();
    item_.store(item, std::memory_order_relaxed);
  }

  /// When no item runs any more.
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<index> item_{std::numeric_limits<index>::max()};
};

}  // namespace fovea
