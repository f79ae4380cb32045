// SPDX-License-Identifier: Apache-2.0
// Embeddings: rows of a table, chosen by id, for tokens and learned positions.
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

}  // namespace fovea
