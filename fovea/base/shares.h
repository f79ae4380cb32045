// SPDX-License-Identifier: Apache-2.0
// Things that threads share: the items of a job, the exception of the lowest one, and things that
// they take in turn.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// A row of items in parts whose lengths differ by one at most, the longer ones first. There is at
/// least one part. If there are fewer items than parts, the last parts are empty.
struct EqualParts {
  index items, parts;

  index begin(index part) const { return part * (items / parts) + std::min(part, items % parts); }
  index size(index part) const { return items / parts + (part < items % parts ? 1 : 0); }

  /// The part that holds `item`.
  index holding(index item) const {
    const index length = items / parts, longer = items % parts;
    const index first_shorter = longer * (length + 1);
    if (item < first_shorter) return item / (length + 1);
    return longer + (item - first_shorter) / length;
  }
};

/// The items of a job in as many equal parts, its shares, as threads may run it. The pool lets a
/// thread begin with the same share in every job that has as many, so what it wrote in one job is
/// in its own cache for the next. Then it takes items that are left in the shares of others.
class Shares {
 public:
  /// Threads beyond these begin in a share of another.
  static constexpr int kMost = 64;

  /// How many shares a job has.
  static int count(index items, int threads) {
    return static_cast<int>(std::clamp<index>(std::min<index>(items, threads), 1, kMost));
  }

  explicit Shares(const EqualParts& cut) {
    for (index s = 0; s < cut.parts; ++s) {
      const index begin = cut.begin(s);
      shares_[static_cast<std::size_t>(s)] = {begin, begin + cut.size(s)};
    }
  }

  /// The next item of a share, or -1 if there are no more than `spare`.
  index take(int share, index spare = 0) {
    Share& from = shares_[static_cast<std::size_t>(share)];
    const std::atomic_ref next(from.next);
    if (next.load(std::memory_order_relaxed) >= from.end - spare) return -1;
    const index item = next.fetch_add(1, std::memory_order_relaxed);
    return item < from.end ? item : -1;
  }

  bool any_left(int share) {
    Share& from = shares_[static_cast<std::size_t>(share)];
    return std::atomic_ref(from.next).load(std::memory_order_relaxed) < from.end;
  }

 private:
  // A cache line each. Not std::atomic, whose constructor would write the lines of all 64.
  struct alignas(64) Share {
    index next, end;
  };

  std::array<Share, kMost> shares_;
};

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

/// Each thing is lent to one user at a time. There are as many as were ever lent at once.
template <class Thing>
class Lent {
 public:
  /// Calls f with a thing that nobody else uses, one of `make` (a unique_ptr) if none is free. Any
  /// thread may call it. If f throws, the thing is gone.
  template <class Make, class F>
  void lend(Make&& make, F&& f) {
    std::unique_ptr<Thing> thing = take();
    if (thing == nullptr) thing = make();
    f(*thing);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(thing));
  }

 private:
  std::unique_ptr<Thing> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    std::unique_ptr<Thing> thing = std::move(free_.back());
    free_.pop_back();
    return thing;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Thing>> free_;
};

}  // namespace fovea
