// SPDX-License-Identifier: Apache-2.0
// The rows of q and k of a call, transformed (row_map.h), in memory linear in their number.
#pragma once

#include <vector>

#include "fovea/attention/parts.h"
#include "fovea/attention/score/row_map.h"
#include "fovea/base/bfloat16.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// The rows of queries and of keys.
template <class T>
struct QueryKeyRows {
  View<T> q;  ///< [B, T, H, D]
  View<T> k;  ///< [B, S, G, D]
};

/// Rows of bfloat16 are transformed in float32, and then rounded: the made rows once, the gradients
/// once before they are turned back and once after.
template <class T>
class MadeRows {
 public:
  using W = Wide<T>;

  /// The shapes must be checked. All arguments but the context must outlive this.
  MadeRows(const Context& ctx, const Score<W>& score, const Rotary& rotary,
           const QueryKeyRows<const T>& rows, const std::vector<Sequence>& sequences);

  QueryKeyRows<const T> made() const { return {made_.q, made_.k}; }

  /// Room for the gradients of the made rows, where those of q and k, or of the score's weights,
  /// are wanted.
  QueryKeyRows<T> gradients(const QueryKeyRows<T>& wanted);
  /// Turns them into the gradients of q, of k, and of the score's weights.
  void pull(const Context& ctx, const QueryKeyRows<T>& wanted) const;

  /// Bytes of all made rows, and of their gradients in a backward.
  static double bytes(const Score<W>& score, const Rotary& rotary,
                      const QueryKeyRows<const T>& rows, const std::vector<Sequence>& sequences);

 private:
  View<T> allocate(const View<const T>& of);
  template <class Query, class Key>
  void for_each_row(const Context& ctx, const Query& query, const Key& key) const;
  void pull_weights(const Context& ctx, const score::Concat<W>& concat) const;

  const Score<W>& score_;
  const QueryKeyRows<const T> in_;
  const std::vector<Sequence>& sequences_;
  const RowMap<W> map_;
  std::vector<AlignedBytes> memory_;
  QueryKeyRows<T> made_, gradients_;
};

}  // namespace fovea::detail
