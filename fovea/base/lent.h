// SPDX-License-Identifier: Apache-2.0
// Things that threads take in turn, such as memory that is worth keeping between two turns.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fovea {

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
