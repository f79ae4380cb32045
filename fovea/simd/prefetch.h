// SPDX-License-Identifier: Apache-2.0
// Rows that a kernel will touch soon, on their way into its cache while it still computes.
#pragma once

#include <algorithm>
#include <cstddef>

#include "fovea/base/view.h"

namespace fovea {

/// A queue of rows. The processor foresees neither rows that lie far apart nor the next tensor: a
/// kernel that computes for long between its loads calls step() now and then, and each asks for
/// some more lines. A hint: it reads nothing and changes no result, so what exceeds kMostBytes of
/// the rows added at once, or finds the queue full, is left out.
class Prefetch {
 public:
  static constexpr index kMostBytes = 64 << 10;
  static constexpr index kMostPieces = 16;

  template <class T>
  void add(Rows<T> rows) {
    const index bytes = rows.columns * static_cast<index>(sizeof(T));
    if (bytes <= 0) return;
    const index count = std::min(rows.rows, kMostBytes / bytes);
    if (count <= 0 || end_ - begin_ == kMostPieces) return;
    const auto* const first = reinterpret_cast<const std::byte*>(rows.data);
    piece(end_++) = {first, count, bytes, rows.stride * static_cast<index>(sizeof(T))};
  }

  /// Asks for the next lines; returns how many.
  int step() {
    int lines = 0;
    for (; lines < kLinesOfStep && begin_ < end_; ++lines) {
      Piece& now = piece(begin_);
      constexpr int kToRead = 0, kSecondCache = 2;
      __builtin_prefetch(now.row + offset_, kToRead, kSecondCache);
      offset_ += kLine;
      if (offset_ < now.bytes) continue;
      offset_ = 0;
      if (--now.rows == 0) {
        ++begin_;
      } else {
        now.row += now.stride;
      }
    }
    return lines;
  }

 private:
  static constexpr index kLine = 64;
  // What a core waits for at once: a small part of the time of a block of a product.
  static constexpr int kLinesOfStep = 16;

  struct Piece {
    const std::byte* row;
    index rows, bytes, stride;
  };
  Piece& piece(index n) { return queue_[n % kMostPieces]; }

  Piece queue_[kMostPieces] = {};
  index begin_ = 0, end_ = 0;
  index offset_ = 0;  // in the row that is next
};

}  // namespace fovea
