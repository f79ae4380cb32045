// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "fovea/base/context.h"

namespace fovea {

// The item that each thread runs first, for each item that was the first of a thread. All threads
// wait until all have begun, so none takes an item of a share that another begins with.
inline std::map<index, std::thread::id> first_items(const Context& ctx, index items) {
  std::mutex mutex;
  std::map<index, std::thread::id> first;
  std::set<std::thread::id> begun;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ctx.for_each(items, [&](index item) {
    std::unique_lock lock(mutex);
    if (begun.insert(std::this_thread::get_id()).second) first[item] = std::this_thread::get_id();
    while (std::ssize(begun) < ctx.threads() && std::chrono::steady_clock::now() < deadline) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  });
  return first;
}

}  // namespace fovea
