// SPDX-License-Identifier: Apache-2.0
// Binary cross-entropy of logits, each a question of its own: several labels for a text, or two
// classes with one logit.
#pragma once

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The weights of each column's losses: [K] numbers, at least 0; empty: all are 1.
struct BinaryWeights {
  Vec<const double> ones = {};   ///< p, of targets 1: PyTorch's weight x pos_weight
  Vec<const double> zeros = {};  ///< q, of targets 0: PyTorch's weight
  double smoothing = 0;          ///< e in [0, 1): a target y is taken as (1 - e) y + e / 2
};

/// The targets y [N,K], each in [0, 1], or -1: that logit has no loss and no gradient.
template <class T>
struct BinaryTargets {
  Rows<const T> y = {};
  BinaryWeights weights = {};
};

/// losses[n] = sum_k p y log(1 + exp(-x)) + q (1 - y) log(1 + exp(x)), x = logits[n,k] and y =
/// y[n,k]; dlogits[n,k] = scale (q (1 - y) sigmoid(x) - p y sigmoid(-x)).
///
/// logits [N,K]; losses [N]; dlogits [N,K], may be logits, may be left out (default-made).
/// Returns the sum of the losses, in double in ascending order. Throws Error(kShape) or, for a
/// target or weight out of range, kOptionValue.
template <class T>
double binary_cross_entropy(const Context& ctx, InRows<T> logits, const BinaryTargets<T>& targets,
                            double scale, Vec<T> losses, Rows<T> dlogits);

}  // namespace fovea
