// SPDX-License-Identifier: Apache-2.0
// Transforms of rows of q and k, after which the score is a scaled dot product: one kernel computes
// them all.
//
//   rotary    r = row, its pairs of columns turned by their angles at this position
//   cosine    r / |r|
//   concat    query: [wq.r, wk]    key: [1, r]        so that their product is w.[q; k]
#pragma once

#include <vector>

#include "fovea/attention/parts.h"
#include "fovea/attention/score/rotary.h"
#include "fovea/base/context.h"
#include "fovea/base/memory.h"
#include "fovea/base/precision.h"

namespace fovea::detail {

template <class T>
class RowMap {
 public:
  /// For rows of D values at positions [first, last].
  RowMap(const Context& ctx, const Score<T>& score, const Rotary& rotary, index D, index first,
         index last);

  /// Does it transform rows at all?
  static bool needed(const Score<T>& score, const Rotary& rotary);
  /// Number of values stored per position.
  static index kept(const Rotary& rotary, index D);

  /// to [made_width]
  void query(const T* q, index head, index position, T* to) const;
  void key(const T* k, index position, T* to) const;

  /// Overwrites dq [D] and dk [D], given the gradient of the transformed row. If that gradient is 0
  /// they become 0, even for a row with NaN.
  void pull_query(const T* q, index head, index position, const T* dto, T* dq) const;
  void pull_key(const T* k, index position, const T* dto, T* dk) const;
  /// Adds to the gradient of the weights of a head, sums [2 D].
  void add_weights(const T* q, index position, const T* dto, double* sums) const;

 private:
  const score::Concat<T>* concat() const { return std::get_if<score::Concat<T>>(&score_); }
  bool is_cosine() const { return std::holds_alternative<score::Cosine>(score_); }
  void turn(const T* row, index position, T* to) const;
  void pull_turned(const T* row, index position, const T* dturned, T* drow) const;

  const Score<T>& score_;
  index D_;
  RotaryTable<T> table_;
};

// The rows of q and k of a call, transformed (RowMap), in memory linear in their number.

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
