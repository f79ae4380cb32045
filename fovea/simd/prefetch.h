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
    if (const Piece added = piece_of(rows); added.rows > 0 && !is_full()) piece(end_++) = added;
  }
  /// Before all that wait: for what is wanted in the next moment.
  template <class T>
  void add_soon(Rows<T> rows) {
    if (const Piece added = piece_of(rows); added.rows > 0 && !is_full()) piece(--begin_) = added;
  }

  /// Asks for the next lines; returns how many.
  int step() {
    int lines = 0;
    for (; lines < kLinesOfStep && begin_ < end_; ++lines) {
      Piece& now = piece(begin_);
      constexpr int kToRead = 0, kSecondCache = 2;
      __builtin_prefetch(now.row + now.offset, kToRead, kSecondCache);
      now.offset += kLine;
      if (now.offset < now.bytes) continue;
      now.offset = 0;
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
    index offset;  // in the row that is next
  };
  template <class T>
  static Piece piece_of(Rows<T> rows) {
    constexpr index kSize = sizeof(T);
    const index bytes = rows.columns * kSize;
    const index count = bytes > 0 ? std::min(rows.rows, kMostBytes / bytes) : 0;
    return {reinterpret_cast<const std::byte*>(rows.data), count, bytes, rows.stride * kSize, 0};
  }
  bool is_full() const { return end_ - begin_ == kMostPieces; }
  Piece& piece(index n) { return queue_[n & (kMostPieces - 1)]; }  // n may be below 0

  Piece queue_[kMostPieces] = {};
  index begin_ = 0, end_ = 0;
};

}  // namespace fovea
