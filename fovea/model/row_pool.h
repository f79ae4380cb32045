// SPDX-License-Identifier: Apache-2.0
// The paths of hypotheses through the rows of a table: hypotheses with a common beginning share its
// rows, so that to copy or reorder them moves numbers of rows, not rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

class RowPool {
 public:
  /// Forgets all paths; there are `count` empty ones.
  void begin(index count);

  /// Path i becomes what path parents[i] was, with a row more: one that no path has. Returns these
  /// rows, which lie below room() then. A parent may have any number of children; paths without
  /// children are gone.
  std::span<const std::int32_t> extend(std::span<const index> parents);

  index size() const { return static_cast<index>(paths_.size()); }
  std::span<const std::int32_t> path(index i) const { return paths_[static_cast<std::size_t>(i)]; }
  /// The rows that a table needs.
  index room() const { return room_; }

 private:
  void find_free();

  std::vector<std::vector<std::int32_t>> paths_;
  std::vector<std::int32_t> free_;    // rows that no path has, the lowest last
  std::vector<std::int32_t> newest_;  // those of the last call
  index room_ = 0;
};

}  // namespace fovea
