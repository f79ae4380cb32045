// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/row_pool.h"

#include <algorithm>

#include "fovea/base/check.h"

namespace fovea {

void RowPool::begin(index count) {
  paths_.assign(static_cast<std::size_t>(count), {});
  free_.clear();
  for (index row = room_; row > 0; --row) free_.push_back(static_cast<std::int32_t>(row - 1));
}

// The rows of paths that have gone are found only when others are needed.
void RowPool::find_free() {
  std::vector<bool> used(static_cast<std::size_t>(room_));
  for (const auto& path : paths_) {
    for (const std::int32_t row : path) used[static_cast<std::size_t>(row)] = true;
  }
  free_.clear();
  for (index row = room_; row > 0; --row) {
    if (!used[static_cast<std::size_t>(row - 1)]) {
      free_.push_back(static_cast<std::int32_t>(row - 1));
    }
  }
}

std::span<const std::int32_t> RowPool::extend(std::span<const index> parents) {
  std::vector<std::vector<std::int32_t>> next(parents.size());
  std::vector<index> children(paths_.size());
  for (const index parent : parents) {
    check(parent >= 0 && parent < size(), "hypotheses: there is no {} of {}", parent, size());
    ++children[static_cast<std::size_t>(parent)];
  }
  for (std::size_t i = 0; i < parents.size(); ++i) {
    const auto parent = static_cast<std::size_t>(parents[i]);
    // The last child has its parent's path itself.
    next[i] = --children[parent] == 0 ? std::move(paths_[parent]) : paths_[parent];
  }
  paths_ = std::move(next);
  if (free_.size() < parents.size()) find_free();
  const auto needed = static_cast<index>(parents.size()) - static_cast<index>(free_.size());
  if (needed > 0) {
    // Twice as many, so that tables grow seldom.
    const index room = std::max(2 * room_, room_ + needed);
    std::vector<std::int32_t> more;
    for (index row = room; row > room_; --row) more.push_back(static_cast<std::int32_t>(row - 1));
    free_.insert(free_.begin(), more.begin(), more.end());
    room_ = room;
  }
  newest_.clear();
  for (auto& path : paths_) {
    newest_.push_back(free_.back());
    path.push_back(free_.back());
    free_.pop_back();
  }
  return newest_;
}

}  // namespace fovea
