// SPDX-License-Identifier: Apache-2.0
// What is to be seen of the weights while they pass: nothing of size T x S is stored for it, and no
// result changes. Observers combine with +, and belong to the forward.
#pragma once

#include <string>

#include "fovea/attention/norm.h"
#include "fovea/attention/parts.h"
#include "fovea/attention/tile.h"

namespace fovea {

struct Dropout;       // attention.h
class TouchedMemory;  // touched.h

/// One query and everything that it sees.
template <class T>
struct ObservedRow {
  const Sequence& sequence;
  index head;
  index i;
  Vec<const T> scores;   ///< [S'] as they are normalised; -infinity where masked
  Vec<const T> weights;  ///< [S'] before dropout; 0 where masked
  T lse;                 ///< with the sink; -infinity where nothing is kept; softmax alone has it
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
  const T* maximum;  ///< [queries] largest score so far; the lowest number where there is none
  const T* sum;      ///< [queries] of exp(score - maximum) so far; 0: no key was kept
  RowNorm<T> norm = {};
  const Dropout* dropout = nullptr;  ///< of the call

  /// Of a row that is complete: the weight of one of its scores, what softmax divides
  /// exp(score - maximum) by, and its log-sum-exp.
  T weight(index r, T score) const { return norm.weight(score, maximum[r], sum[r]); }
  T total(index r) const { return norm.total(maximum[r], sum[r]); }
  T lse(index r) const { return static_cast<T>(norm.lse(maximum[r], sum[r])); }
};

/// A tile of scores and weights on their way through the forward, keys ascending. Queries lie in
/// the lanes; rows of lanes are whole vectors, as those of the state are.
template <class T>
struct ObservedTile {
  ObservedQueries<T> queries;
  TileSite site;
  ScoreTile<const T> scores;   ///< as they are normalised; -infinity where masked
  ScoreTile<const T> weights;  ///< exp(score - maximum), before dropout; not softmax: the weights
  const T* worth;              ///< [queries] exp(maximum before this tile - maximum); else 1
};

/// Keys of one sequence under one head, and what they received from all its queries.
struct ObservedColumns {
  const Sequence& sequence;
  index head;
  index key;               ///< the first
  Vec<const double> sums;  ///< of the final weights of each key, before dropout, queries ascending
};

/// One thing to observe. row() and clear() are the definition, which the plain reference uses, and
/// all that must be written: a tile's worth of rows is then kept until it is complete, S' values
/// for each. What can be summed on the way keeps less: it overrides the four functions below, which
/// are tested against the definition. Rows are observed by any thread in any order.
template <class T>
class Observer {
 public:
  using Family = Observer;
  static constexpr const char* kFamily = "an observer";
  virtual ~Observer() = default;

  /// Writes what there is to be seen of a row.
  virtual void row(const ObservedRow<T>& row) const = 0;
  /// Writes everywhere what a row of padding has. Called once, before any row.
  virtual void clear() const = 0;

  /// Values kept of each query of a sequence from tile to tile: state[n][query of the tile].
  virtual index state_size(const Sequence& sequence) const;
  virtual void start(Rows<T> state) const;
  /// Does it want to see the tiles of these queries? Copies are made for those who do; it may be
  /// shown others that another observer wants.
  virtual bool sees(const ObservedQueries<T>& queries) const;
  /// Tiles that the mask keeps nothing of are not seen.
  virtual void see(const ObservedTile<T>& tile, Rows<T> state) const;
  virtual void finish(const ObservedQueries<T>& queries, Rows<const T> state) const;

  /// Does it mean anything for softmax alone, whose weights are a distribution?
  virtual bool needs_softmax() const { return false; }

  /// Does it look at columns? They are sums of weights that are final, so the forward computes its
  /// scores once more, after all rows are complete; the default is no.
  virtual bool sees_columns() const;
  /// Called once for each key of each sequence and head, in pieces, by any thread in any order.
  virtual void columns(const ObservedColumns& columns) const;

  /// Names the memory that it writes, so that an overlap with another tensor is noticed.
  virtual void touch(TouchedMemory& memory) const;
  /// Throws Error(kShape) unless what is written fits the call.
  virtual void check_shape(const AttentionSizes& sizes) const;
  virtual std::string name() const = 0;
};

/// Zero or more observers.
template <class T>
using Observe = Parts<Observer<T>>;

}  // namespace fovea
