// SPDX-License-Identifier: Apache-2.0
// Prefetches rows that a kernel will use soon, while it still computes: a product asks for a line
// every few steps, once for each line of a queue of rows (Prefetch), or again and again for those
// of a few rows (LinesAhead). Asking for many at once was measured to stop it for as long as
// reading them takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "fovea/base/view.h"

namespace fovea {

namespace detail {

inline constexpr index kCacheLine = 64;

/// Asks for the cache line at `line`, to read it, into the second cache.
inline void prefetch_line(const void* line) {
  constexpr int kToRead = 0, kSecondCache = 2;
  __builtin_prefetch(line, kToRead, kSecondCache);
}

/// Asks for the cache line at `line`, to write it. On Zen 3, products of 384 terms whose results go
/// to the memory take .90 to .95 of the time that they take if it is asked for to be read. (The
/// reason was not measured: perhaps a line that was read does not belong to the core yet.) The
/// builtin becomes prefetchw only where the compiler may assume that instruction; nearly all
/// processors without it ignore it.
inline void prefetch_line_to_write(const void* line) {
#ifdef __x86_64__
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  constexpr int kToWrite = 1;
  __builtin_prefetch(line, kToWrite);
#endif
}

}  // namespace detail

/// A queue of rows. The hardware prefetcher finds neither rows that are far apart nor the next
/// tensor. So a kernel that computes for long between its loads asks now and then for a line.
/// Prefetching reads nothing and changes no result, so rows beyond kMostBytes of one call, or
/// beyond a full queue, are left out.
class Prefetch {
 public:
  static constexpr index kMostBytes = 64 << 10;
  static constexpr index kMostPieces = 16;

  template <class T>
  void add(Rows<T> rows) {
    if (const Piece added = piece_of(rows); added.columns > 0 && !is_full()) piece(end_++) = added;
  }
  /// Puts rows at the front of the queue: for rows that are needed next.
  template <class T>
  void add_soon(Rows<T> rows) {
    if (const Piece added = piece_of(rows); added.columns > 0 && !is_full())
      piece(--begin_) = added;
  }

  /// The rest of the first lines of all rows, then of their second lines, and so on: asking goes
  /// down a column of lines, because then the next one is always as far. The caller keeps it in
  /// registers while it computes.
  struct Column {
    const std::byte* next;
    index stride;
    const std::byte* last;

    /// Asks for the next line; after the last one for that again and again, until continue_at().
    void ask() {
      detail::prefetch_line(next);
      next = std::min(next + stride, last);
    }
  };
  /// The column that is next. If there is none, asks are for `nothing`, which costs little if it is
  /// in the first cache.
  Column column(const void* nothing) const {
    if (begin_ == end_) return column_of(nothing);
    const Piece& now = queue_[begin_ & (kMostPieces - 1)];
    return {now.next, now.stride, now.last};
  }
  static Column column_of(const void* line) {
    const auto* const only = static_cast<const std::byte*>(line);
    return {only, 0, only};
  }
  /// Keeps what is left of a column that column() gave. If a sum was too short to ask, this does.
  void continue_at(const Column& column) {
    if (begin_ == end_) return;
    Piece& now = piece(begin_);
    const bool asks = column.next == now.next || column.next == column.last;
    now.next = column.next;
    if (asks) ask_now();  // perhaps for the second time
  }

  /// Asks for some lines at once; returns how many. Products on tile registers do so between two
  /// blocks (amx-inl.h), with which they were measured.
  int step() {
    int lines = 0;
    for (; lines < kLinesOfStep && begin_ < end_; ++lines) ask_now();
    return lines;
  }

 private:
  // About as many cache misses as a core can have outstanding.
  static constexpr int kLinesOfStep = 16;

  struct Piece {
    const std::byte *next, *last;  // in the column of lines that is next
    index stride, height;          // between two rows, and between the first and the last
    index columns;                 // that are left
  };
  template <class T>
  static Piece piece_of(Rows<T> rows) {
    constexpr index kSize = sizeof(T);
    const index bytes = rows.columns * kSize;
    const index count = bytes > 0 ? std::min(rows.rows, kMostBytes / bytes) : 0;
    if (count <= 0) return {};
    const auto* const first = reinterpret_cast<const std::byte*>(rows.data);
    const index stride = rows.stride * kSize, height = (count - 1) * stride;
    return {first, first + height, stride, height,
            (bytes + detail::kCacheLine - 1) / detail::kCacheLine};
  }
  // Asks for one line of the first piece, which there must be.
  void ask_now() {
    Piece& now = piece(begin_);
    detail::prefetch_line(now.next);
    if (now.next != now.last) {
      now.next += now.stride;
    } else if (--now.columns == 0) {
      ++begin_;
    } else {
      now.last += detail::kCacheLine;
      now.next = now.last - now.height;
    }
  }
  bool is_full() const { return end_ - begin_ == kMostPieces; }
  Piece& piece(index n) { return queue_[n & (kMostPieces - 1)]; }  // n may be below 0

  Piece queue_[kMostPieces] = {};
  index begin_ = 0, end_ = 0;
};

/// The cache lines of some rows, one after another and then from the first again. A product asks
/// for one every few steps of its sum, so that they arrive while it computes.
class LinesAhead {
 public:
  LinesAhead() = default;  ///< of no rows
  template <class T>
  explicit LinesAhead(Rows<T> rows) {
    if (rows.rows == 0 || rows.columns == 0) return;
    constexpr index kSize = sizeof(T);
    now_ = {reinterpret_cast<const std::byte*>(rows.data), rows.rows, rows.columns * kSize,
            rows.stride * kSize};
    if (now_.stride == now_.bytes) now_.bytes *= std::exchange(now_.rows, 1);
    begin_row(0);
  }

  bool is_empty() const { return now_.first == nullptr; }

  /// These lines, then the lines of `other`, and so on in turns: of three matrices at most.
  LinesAhead then(const LinesAhead& other) const {
    if (is_empty()) return other;
    LinesAhead all = *this;
    if (all.after_.first == nullptr) {
      all.after_ = other.now_;
      all.last_ = other.after_;
    } else {
      all.last_ = other.now_;
    }
    return all;
  }

  /// The rest of a row. The caller keeps it in registers.
  struct Row {
    const std::byte *next, *end;
  };
  Row row() const { return row_; }
  /// Keeps what is left of a row, or begins the next one if nothing is.
  void continue_at(Row row) {
    row_ = row;
    if (row.next >= row.end) begin_next_row();
  }

  /// Asks for the next line; `row` becomes the next row after its last line. Must not be called if
  /// there are no rows.
  void ask(Row& row) {
    detail::prefetch_line(row.next);
    row.next += detail::kCacheLine;
    if (row.next < row.end) return;
    begin_next_row();
    row = row_;
  }
  /// ask() within a row, at a lower price. After the last line it asks for the end of the row again
  /// and again, until continue_at: for rows of one line, a block asks for one.
  static void ask_in_row(Row& row) {
    detail::prefetch_line(row.next);
    row.next = std::min(row.next + detail::kCacheLine, row.end);
  }

 private:
  struct Piece {
    const std::byte* first;
    index rows, bytes, stride;
  };

  void begin_next_row() {
    if (number_ + 1 < now_.rows) return begin_row(number_ + 1);
    if (after_.first != nullptr) std::swap(now_, after_);
    if (last_.first != nullptr) std::swap(after_, last_);  // what was now_ is last
    begin_row(0);
  }
  void begin_row(index number) {
    number_ = number;
    const std::byte* const begin = now_.first + number * now_.stride;
    row_ = {begin, begin + now_.bytes};
  }

  Piece now_ = {}, after_ = {}, last_ = {};
  index number_ = 0;
  Row row_ = {};
};

}  // namespace fovea

namespace fovea::detail {

/// A row that lies anywhere in memory, where no hardware looks for it.
template <class T>
void prefetch_row(Rows<T> rows, index row) {
  const auto* const begin = reinterpret_cast<const std::byte*>(rows[row]);
  const auto bytes = rows.columns * static_cast<index>(sizeof(T));
  for (index at = 0; at < bytes; at += kCacheLine) prefetch_line(begin + at);
}

}  // namespace fovea::detail
