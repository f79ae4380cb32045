// SPDX-License-Identifier: Apache-2.0
// The part of the definition that is about scores: the score of one query and one key, by the
// formulas of score.h, and its gradient. It shares no code with the kernels, which transform the
// rows of a call (made_rows.h) or score a tile at a time (pair_score.h).
//
// With rotary positions, rows of q and k are rotated before all else, and their gradients back
// after all else.
#pragma once

#include <vector>

#include "fovea/attention/attention.h"

namespace fovea::detail {

/// The numbers that the products read: as they are, or rounded to bfloat16.
enum class Factors { kExact, kBFloat16 };

template <class T>
T as_factor(T x, Factors factors) {
  return factors == Factors::kExact ? x : static_cast<T>(to_float(to_bfloat16(x)));
}

/// Rotates a row [D] in place by its place, first + position. The transpose is the rotation by
/// -place.
template <class T>
void rotate(const Rotary& rotary, index place, Vec<T> row);

/// The inputs of a call, rows of q and k rotated, and then as the products read them. It owns the
/// rotated rows; where the call has no rotary positions there are none, and in() views what it was
/// given.
template <class T>
class RotatedRows {
 public:
  RotatedRows(const Rotary& rotary, const std::vector<Sequence>& sequences,
              const AttentionInputs<T>& in, Factors factors = Factors::kExact);
  RotatedRows(const RotatedRows&) = delete;
  RotatedRows& operator=(const RotatedRows&) = delete;

  const AttentionInputs<T>& in() const { return in_; }

 private:
  std::vector<T> q_, k_;
  AttentionInputs<T> in_;
};

/// Turns the gradients of rotated rows, as the products have made them, into those of the rows, in
/// place. An empty view stays empty.
template <class T>
void rotate_back(const Rotary& rotary, const std::vector<Sequence>& sequences, const View<T>& dq,
                 const View<T>& dk, Factors factors = Factors::kExact);

/// The score of the rows.
template <class T>
T reference_score(const Score<T>& score, index head, const ScoreRows<T>& rows);

/// Adds the gradients of the rows, and of the score's weights unless `gradients.parameters` is
/// null.
template <class T>
void pull_reference_score(const Score<T>& score, index head, const ScoreRows<T>& rows, T dscore,
                          const ScoreGradients<T>& gradients);

/// The rows, or gradients, that the parts of a bias see. Empty: the rows of the call themselves.
template <class T>
struct SeenRows {
  std::vector<T> q, k;

  ScoreRows<T> in_place_of(const ScoreRows<T>& rows) const {
    return q.empty() ? rows : ScoreRows<T>{q, k, rows.scale};
  }
  ScoreGradients<T> in_place_of(const ScoreGradients<T>& gradients) {
    return q.empty() ? gradients : ScoreGradients<T>{q, k, gradients.parameters};
  }
};

/// With cosine, rows of length 1. With concat, [wq.q, wk] and [1, k], of D + 1 values. Their dot
/// product is the score, as that of the rows is with dot, so that a part such as bias::Shaw, which
/// adds a vector to the key, means the same with each of them. With dot, l2 and additive, the rows
/// themselves.
template <class T>
SeenRows<T> seen_rows(const Score<T>& score, index head, const ScoreRows<T>& rows);

/// Adds what gradients of the seen rows are to the rows, and to the score's weights unless
/// `gradients.parameters` is null.
template <class T>
void pull_seen_rows(const Score<T>& score, index head, const ScoreRows<T>& rows,
                    const SeenRows<T>& dseen, const ScoreGradients<T>& gradients);

/// Number of sums per head for the gradient of the score's weights: 0 if there are none, or if
/// their gradient is not wanted.
template <class T>
index score_gradient_size(const Score<T>& score);

/// Stores the finished sums [H, score_gradient_size()].
template <class T>
void store_score_gradient(const Score<T>& score, const std::vector<double>& sums);

}  // namespace fovea::detail
