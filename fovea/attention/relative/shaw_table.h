// SPDX-License-Identifier: Apache-2.0
// One vector per relative position of key and query, clipped (Shaw, Uszkoreit, Vaswani 2018,
// section 3.2).
#pragma once

#include <string_view>

#include "fovea/attention/tile.h"

namespace fovea {

/// Which row of a table [2 r + 1, W] belongs to query position p and key j.
enum class ShawOrder {
  kQueryMinusKey,  ///< "i-j": row clip(p - j, -r, r) + r
  kKeyMinusQuery,  ///< "j-i": row clip(j - p, -r, r) + r, as in the paper
};

}  // namespace fovea

namespace fovea::detail {

template <class T>
struct ShawTable {
  Rows<const T> rows;     ///< [2 r + 1, W], shared by the heads
  Rows<T> gradient = {};  ///< of the same shape, or empty
  ShawOrder order = ShawOrder::kQueryMinusKey;

  index clip() const { return rows.rows / 2; }
  /// The row for the distance j - p, which is clipped here.
  index row_at(index distance) const;
  index row_of(const ScoreSite& site) const { return row_at(site.j - site.position()); }
  index gradient_size() const { return gradient.data == nullptr ? 0 : rows.rows * rows.columns; }
  /// gradient = the sum over the heads of `sums` [H, gradient_size()].
  void store_gradient(const double* sums, index heads) const;
  /// Throws Error(kShape) unless there are 2 r + 1 rows.
  void check_rows() const;
  /// Throws Error(kShape) unless the rows have `width` columns, called `letter` in the message.
  void check_width(std::string_view letter, index width) const;
};

}  // namespace fovea::detail
