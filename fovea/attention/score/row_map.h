// SPDX-License-Identifier: Apache-2.0
// Transforms of rows of q and k, after which the score is a scaled dot product: one kernel computes
// them all.
//
//   rotary    r = row, its pairs of columns turned by their angles at this position
//   cosine    r / |r|
//   concat    query: [wq.r, wk]    key: [1, r]        so that their product is w.[q; k]
#pragma once

#include "fovea/attention/score/rotary.h"
#include "fovea/base/context.h"

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

}  // namespace fovea::detail
