// SPDX-License-Identifier: Apache-2.0
// Tiles with vectors by relative position (shaw_table.h), forward and backward. Compiled for every
// instruction set.
#pragma once

#include "fovea/attention/relative/shaw_table.h"

namespace fovea::detail {

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
