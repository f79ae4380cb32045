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

// Tiles with vectors by relative position (ShawTable), forward and backward. Compiled for every
// instruction set.

/// tile += (factor x_r) . row of (r, c), where x [queries, W] are rows of the tile's queries. In
/// the same bits for both layouts, and for any tile that a pair is in.
template <class T>
void add_shaw_products(const TileSite& site, const ShawTable<T>& table, Rows<const T> x, T factor,
                       const ScoreTile<T>& tile);

/// The sums that pull_shaw_products() adds to.
template <class T>
struct ShawGradients {
  Rows<T> dx;                ///< [queries, W], or without data
  T factor = 1;              ///< of dx
  double* dtable = nullptr;  ///< [2 r + 1, W], or null
};

/// dx_r += gradients.factor * sum of g_rc (row of (r, c)), and dtable += g_rc (factor x_r) at that
/// row, g the values of a tile [queries, keys]. A value of 0 adds nothing, whatever it meets.
template <class T>
void pull_shaw_products(const TileSite& site, const ShawTable<T>& table, Rows<const T> x, T factor,
                        Rows<const T> tile, const ShawGradients<T>& gradients);

/// Can add_shaw_vectors() do it? Queries lie in the lanes, and rows are whole vectors.
template <class T>
bool shaw_vectors_fit(const ScoreTile<const T>& weights, Rows<T> o);

/// o[c][r] += sum of w_rc (row of (r, c))[c], w the weights of a tile. A weight of 0 adds nothing.
template <class T>
void add_shaw_vectors(const TileSite& site, const ShawTable<T>& table,
                      const ScoreTile<const T>& weights, Rows<T> o);

/// The rows of a table that a tile, or some of its queries, needs: one slot per distance j - p that
/// occurs, ascending. A tile wholly beyond the clip has one slot.
template <class T>
struct ShawTile {
  index queries, keys;
  index count;         ///< slots
  index origin;        ///< query r and key c have slot clamp(origin + c - r, 0, count - 1)
  Rows<const T> rows;  ///< [count, W], the row of each slot; the stride may be negative
  index first_row;     ///< the row of slot 0 in the table
  index row_step;      ///< from slot to slot, 1 or -1
  index last_row;      ///< of the table

  ShawTile(const TileSite& site, const ShawTable<T>& table);

  index table_row(index slot) const { return first_row + slot * row_step; }
  /// Does the slot stand for all distances beyond the clip?
  bool at_end(index slot) const { return table_row(slot) == 0 || table_row(slot) == last_row; }
};

/// The functions of one instruction set.
template <class T>
struct ShawKernels {
  void (*add_products)(const ShawTile<T>&, Rows<const T> x, T factor, const ScoreTile<T>&);
  void (*pull_products)(const ShawTile<T>&, Rows<const T> x, T factor, Rows<const T> tile,
                        const ShawGradients<T>&);
  void (*add_vectors)(const ShawTile<T>&, const ScoreTile<const T>& weights, Rows<T> o);
  index lanes;
};

}  // namespace fovea::detail
