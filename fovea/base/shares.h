// SPDX-License-Identifier: Apache-2.0
// Which thread of a job runs which items.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

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

}  // namespace fovea
