// SPDX-License-Identifier: Apache-2.0
// Embeddings: rows of a table, chosen by id, for tokens and learned positions; and sums of the rows
// of bags of ids, as fastText has them (Joulin et al. 2016, arXiv:1607.01759).
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The table [V,C], the ids [N] of the rows to take, each in [0, V), and a factor.
template <class T>
struct EmbeddingTable {
  Rows<const T> table = {};
  Vec<const std::int32_t> ids = {};
  double scale = 1;
};

/// y[n] = scale * table[ids[n]] + positions.scale * positions.table[positions.ids[n]].
///
/// y [N,C]. Both tables have C columns. Without positions, `positions` is default-constructed.
/// Throws Error(kShape), which names place and value, for an id out of range, before y is written.
template <class T>
void embedding_forward(const Context& ctx, const EmbeddingTable<std::type_identity_t<T>>& tokens,
                       const EmbeddingTable<std::type_identity_t<T>>& positions, Rows<T> y);

/// dtable[ids[n]] += scale * dy[n] for n = 0 .. N-1, in this order for every row of the table, so
/// the bits are the same for any number of threads. dy [N,C], dtable [V,C]. Call it once for each
/// table. The row `frozen` (padding) gets nothing.
template <class T>
void embedding_backward(const Context& ctx, Vec<const std::int32_t> ids, double scale, InRows<T> dy,
                        Rows<T> dtable, std::int32_t frozen = -1);

/// The way in which the n rows of a bag become one; an empty bag gives 0.
enum class BagMode {
  kSum,
  kMean,
  kRootMean,  ///< their sum / sqrt(n): rows that are independent keep their variance
};

/// Bag b has the ids [offsets[b], offsets[b + 1]): offsets [B + 1] ascend from 0 to N.
struct IdBags {
  Vec<const std::int32_t> ids = {};
  Vec<const std::int32_t> offsets = {};
  BagMode mode = BagMode::kSum;
  std::int32_t padding = -1;  ///< an id that does not count

  index count() const { return offsets.size - 1; }
};

/// y[b] = f_b sum over the ids of bag b of table[id], in the order of the ids; f_b is 1, or 1 / n
/// or 1 / sqrt(n), n the number of its ids that count. table [V,C], y [B,C]. Throws Error(kShape)
/// for an id out of range or offsets that do not fit, before y is written.
template <class T>
void embedding_bag_forward(const Context& ctx, InRows<T> table, const IdBags& bags, Rows<T> y);

/// dtable[id] += f_b dy[b] for every id, in the order of the ids. dy [B,C], dtable [V,C].
template <class T>
void embedding_bag_backward(const Context& ctx, const IdBags& bags, InRows<T> dy, Rows<T> dtable);

}  // namespace fovea
