// SPDX-License-Identifier: Apache-2.0
// How a row of scores becomes a row of weights.
#pragma once

#include <limits>
#include <string>
#include <variant>

#include "fovea/base/view.h"

namespace fovea {

namespace norm {

/// Weights are exp(score) over their sum. A row that keeps no key has weights 0 and log-sum-exp
/// -inf.
struct Softmax {};

/// Weights are 1 / (1 + exp(-score)), each for itself (Ramapuram et al. 2024, who add -log S to the
/// scores). There is no log-sum-exp.
struct Sigmoid {};

/// Weights are the scores (spec A15). There is no log-sum-exp.
struct None {};

}  // namespace norm

/// The weight of what the mask drops is 0 under each of them.
using Norm = std::variant<norm::Softmax, norm::Sigmoid, norm::None>;

/// A logit of each head that joins the denominator of softmax and has no value: a place for weight
/// that belongs nowhere (Xiao et al. 2023). lse counts it; a row that keeps no key has o = 0 and
/// lse the logit. Each must be finite, or -infinity, which is no sink.
template <class T>
struct Sink {
  Vec<const T> logits = {};  ///< [H], or empty: no sink
  Vec<T> dlogits = {};       ///< [H], overwritten by backward, or empty
};

/// "softmax", "sigmoid" or "none".
std::string name_of(const Norm& norm);

/// How the rows of one head are normalised, given the state of an online softmax: the largest score
/// m, and l, the sum of exp(score - m).
template <class T>
struct RowNorm {
  Norm norm = {};
  T sink = -std::numeric_limits<T>::infinity();

  bool is_softmax() const { return std::holds_alternative<norm::Softmax>(norm); }
  /// What softmax divides by, in units of exp(m): l, and the sink's part.
  T total(T m, T l) const;
  /// The weight of a score; 0 for -infinity, which a masked score is.
  T weight(T score, T m, T l) const;
  /// Log-sum-exp with the sink's part; -infinity where there is neither a key nor a sink.
  double lse(T m, T l) const;
};

}  // namespace fovea
