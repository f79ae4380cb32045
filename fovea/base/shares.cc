// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/shares.h"

#include <algorithm>

namespace fovea {

namespace {

std::atomic<unsigned> threads_seen{0};

unsigned number_of_this_thread() {
  thread_local const unsigned number = threads_seen.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

Shares::Shares(index items, int threads)
    : size_(static_cast<int>(std::clamp<index>(std::min<index>(items, threads), 1, kMost))) {
  const index length = items / size_, longer = items % size_;
  for (index s = 0; s < size_; ++s) {
    Share& share = shares_[static_cast<std::size_t>(s)];
    const index begin = s * length + std::min(s, longer);
    share.next.store(begin, std::memory_order_relaxed);
    share.end = begin + length + (s < longer ? 1 : 0);
  }
}

int Shares::own() {
  const auto shares = static_cast<unsigned>(size_);
  const unsigned home = number_of_this_thread() % shares;
  for (unsigned k = 0; k < shares; ++k) {
    const unsigned share = (home + k) % shares;
    if (!shares_[share].owned.exchange(true, std::memory_order_relaxed)) {
      return static_cast<int>(share);
    }
  }
  return static_cast<int>(home);
}

index Shares::take(int share) {
  Share& from = shares_[static_cast<std::size_t>(share)];
  if (from.next.load(std::memory_order_relaxed) >= from.end) return -1;
  const index item = from.next.fetch_add(1, std::memory_order_relaxed);
  return item < from.end ? item : -1;
}

bool Shares::any_left() const {
  return std::any_of(shares_.begin(), shares_.begin() + size_, [](const Share& share) {
    return share.next.load(std::memory_order_relaxed) < share.end;
  });
}

}  // namespace fovea
