// SPDX-License-Identifier: Apache-2.0
// How a row of scores becomes a row of weights.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "fovea/base/few_numbers.h"

namespace fovea {

namespace norm {

/// Weights are exp(score) over their sum. A row that keeps no key has weights 0 and log-sum-exp
/// -inf.
struct Softmax {
  static constexpr bool kNeedsLse = true;  ///< a weight depends on the whole row
};

/// Each weight is 1 / (1 + exp(-score)) (Ramapuram et al. 2024, who add -log S to the scores).
/// There is no log-sum-exp.
struct Sigmoid {
  static constexpr bool kNeedsLse = false;
};

/// Weights are the scores, as in linear attention. There is no log-sum-exp.
struct None {
  static constexpr bool kNeedsLse = false;
};

}  // namespace norm

/// With each of them, masked scores have weight 0.
using Norm = std::variant<norm::Softmax, norm::Sigmoid, norm::None>;

/// Only with softmax is there a log-sum-exp, which the backward needs.
inline bool needs_lse(const Norm& norm) {
  return std::visit([](auto one) { return decltype(one)::kNeedsLse; }, norm);
}

/// One logit per head that is added to the denominator of softmax and has no value (Xiao et al.
/// 2023). lse counts it. A row that keeps no key has o = 0, and the logit as its lse. A logit is
/// finite, or -infinity: then the head has no sink.
template <class T>
struct Sink {
  Sink() = default;
  Sink(FewNumbers<T> values) : logits(std::move(values)) {}
  /// Keeps views of both, for logits that are learned change.
  Sink(Vec<const T> values, Vec<T> gradient) : logits(values), dlogits(gradient) {}

  FewNumbers<T> logits;  ///< [H], or empty: no sink
  Vec<T> dlogits;        ///< [H], overwritten by backward, or empty
};

/// "softmax", "sigmoid" or "none".
std::string name_of(const Norm& norm);

/// A log-sum-exp in two parts: its nearest number of type T, and its rounding error.
template <class T>
struct RowLse {
  T value, low;
};

/// How the rows of one head are normalised, given the state of an online softmax: the largest score
/// m, and l, the sum of exp(score - m).
template <class T>
struct RowNorm {
  Norm norm = {};
  T sink = -std::numeric_limits<T>::infinity();

  /// The denominator of softmax divided by exp(m): l plus the part of the sink.
  T total(T m, T l) const;
  /// The weight of a score; 0 for -infinity, that is, for a masked score.
  T weight(T score, T m, T l) const;
  /// The gradient of a score, given its weight, the gradient of that, and delta, the sum of both's
  /// products over the row.
  T dscore(T weight, T dweight, T delta) const;
  /// Log-sum-exp, the sink included; -infinity if there is neither a key nor a sink.
  RowLse<T> lse(T m, T l) const;
};

}  // namespace fovea
