// SPDX-License-Identifier: Apache-2.0
// Observers read the weights while the forward computes them. They store nothing of size T x S and
// change no result. They combine with +.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "fovea/attention/norm.h"
#include "fovea/attention/parts.h"
#include "fovea/base/types.h"

namespace fovea {

struct Dropout;  // attention.h

/// One query with its scores and weights.
template <class T>
struct ObservedRow {
  const Sequence& sequence;
  index head;
  index i;
  Vec<const T> scores;               ///< [S'] as they are normalised; -infinity where masked
  Vec<const T> weights;              ///< [S'] before dropout; 0 where masked
  T lse;                             ///< with the sink; -infinity if no key is kept; softmax only
  const Dropout* dropout = nullptr;  ///< of the call

  index position() const { return sequence.position(i); }
};

/// Queries of one sequence and head, and the state of their online normalisation.
template <class T>
struct ObservedQueries {
  const Sequence& sequence;
  index head;
  index query;
  index queries;
  const T* maximum;  ///< [queries] largest score so far; the lowest number without any
  const T* sum;      ///< [queries] of exp(score - maximum) so far; 0: no key was kept
  RowNorm<T> norm = {};
  const Dropout* dropout = nullptr;  ///< of the call

  /// For a complete row: the weight of one of its scores, the denominator of exp(score - maximum),
  /// and its log-sum-exp.
  T weight(index r, T score) const { return norm.weight(score, maximum[r], sum[r]); }
  T total(index r) const { return norm.total(maximum[r], sum[r]); }
  T lse(index r) const { return norm.lse(maximum[r], sum[r]).value; }
};

/// A tile of scores and weights in the forward, keys ascending. Queries are the contiguous axis
/// (the lanes), padded to whole vectors, in the state as well.
template <class T>
struct ObservedTile {
  ObservedQueries<T> queries;
  TileSite site;
  ScoreTile<const T> scores;   ///< as they are normalised; -infinity where masked
  ScoreTile<const T> weights;  ///< exp(score - maximum), before dropout; not softmax: the weights
  const T* rescale;            ///< [queries] rescales earlier sums: exp(old maximum - new); or 1
};

/// Keys of one sequence and head, and the weights that they received from all queries.
struct ObservedColumns {
  const Sequence& sequence;
  index head;
  index key;               ///< the first
  Vec<const double> sums;  ///< of the final weights of each key, before dropout, queries ascending
};

/// One statistic to observe. row() and clear() are the definition, which the plain reference uses.
/// Nothing else is required: the S' scores of each row of a tile are then stored until it is
/// complete. A statistic that can be summed key by key needs less memory: override the four
/// functions below, which are tested against the definition. Any thread observes rows in any order.
template <class T>
class Observer {
 public:
  using Family = Observer;
  static constexpr const char* kFamily = "an observer";
  virtual ~Observer() = default;

  /// Writes the statistic of a row.
  virtual void row(const ObservedRow<T>& row) const = 0;
  /// Writes the value of padding everywhere. Called once, before any row.
  virtual void clear() const = 0;

  /// Number of values stored per query from tile to tile: state[n][query of the tile].
  virtual index state_size(const Sequence& sequence) const;
  virtual void start(Rows<T> state) const;
  /// Does it need the tiles of these queries? If no observer does, no copies are made. It may get
  /// tiles that only another observer needs.
  virtual bool sees(const ObservedQueries<T>& queries) const;
  /// Not called for tiles of which the mask keeps nothing.
  virtual void see(const ObservedTile<T>& tile, Rows<T> state) const;
  virtual void finish(const ObservedQueries<T>& queries, Rows<const T> state) const;

  /// Does it need weights that sum to 1, as softmax has them?
  virtual bool needs_softmax() const { return false; }

  /// Does it observe columns? They sum final weights, so the forward computes the scores a second
  /// time, after all rows are complete. The default is no.
  virtual bool sees_columns() const;
  /// Called once for each key of each sequence and head, in pieces, by any thread in any order.
  virtual void columns(const ObservedColumns& columns) const;

  /// Names the memory that it writes, so that an overlap with another tensor is an error.
  virtual void name_memory(OverlapCheck& memory) const;
  /// Throws Error(kShape) unless its outputs fit the call.
  virtual void check_shape(const AttentionSizes& sizes) const;
  virtual std::string name() const = 0;
};

/// Zero or more observers.
template <class T>
using Observe = Parts<Observer<T>>;

}  // namespace fovea

namespace fovea::detail {

/// Does any of them need the columns, which take a second pass over the scores?
template <class T>
bool sees_columns(const Observe<T>& observe) {
  const auto& parts = observe.parts();
  return std::any_of(parts.begin(), parts.end(), [](const auto& p) { return p->sees_columns(); });
}

template <class T>
using StateInteger = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Bit casts, because a float is not exact beyond 2^24. Copy such values, do not compute with
/// them.
template <class T>
T state_from_index(index n) {
  return std::bit_cast<T>(static_cast<StateInteger<T>>(n));
}
template <class T>
index state_to_index(T value) {
  return std::bit_cast<StateInteger<T>>(value);
}

}  // namespace fovea::detail
