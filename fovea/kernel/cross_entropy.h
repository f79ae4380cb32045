// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of the softmax, with ignored targets, as PyTorch's cross_entropy with ignore_index;
// alone, and fused with the projection that computes the logits.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

class BlockMatrix;
template <class T>
class PackedMatrix;

/// targets [N], each in [0, V) or `ignore`: such rows have no loss and no gradient.
struct Targets {
  Vec<const std::int32_t> ids = {};
  std::int32_t ignore = -1;
  /// w [V] of the classes, at least 0; empty: all are 1.
  Vec<const double> weights = {};
  /// e in [0, 1): each class has the share e / V of the target, which keeps 1 - e (Szegedy et al.
  /// 2016, "Rethinking the Inception architecture", section 7).
  double smoothing = 0;
};

/// How many rows have a target. Throws Error(kShape), which names place and value, for a target
/// that is neither `ignore` nor in [0, V); kOptionValue for a weight or a smoothing out of range.
index count_targets(const Targets& targets, index V);
/// The sum over the rows with a target of w[target]: what PyTorch divides the mean by.
double weigh_targets(const Targets& targets, index V);

/// The sum of the rows' losses, in double in ascending order, and the number of rows with a target.
/// The mean is total / count, or total / weigh_targets(). If no row has a target, total, count and
/// every gradient are 0.
struct CrossEntropy {
  double total = 0;
  index count = 0;
};

/// losses[n] = sum_v a[v] (log(sum_u exp(logits[n,u])) - logits[n,v]);
/// dlogits[n,v] = scale * (sum_u a[u] softmax(logits[n])[v] - a[v]),
/// where a[v] = [v = target[n]], or (1 - e) w[v] [v = target[n]] + e w[v] / V as the targets say.
///
/// logits [N,V]; losses [N] in nats, 0 where ignored; dlogits [N,V], may be logits, may be left out
/// (default-made). A target whose logit is -inf has infinite loss.
template <class T>
CrossEntropy cross_entropy(const Context& ctx, InRows<T> logits, const Targets& targets,
                           double scale, Vec<T> losses, Rows<T> dlogits);

/// The arguments of linear_cross_entropy: logits = x weight^T + bias, or c tanh(logits / c) if the
/// softcap c is not 0. x [N,C], weight [V,C], bias
/// [V] or left out. dx [N,C] is written, dweight [V,C] and dbias [V] are written or added to; each
/// may be left out (evaluation leaves out all). losses [N] may be left out. `scale` multiplies the
/// gradients alone: 1 / count_targets() makes them those of the mean. A caller that has packed the
/// weight already passes packed_transposed (weight^T, for the logits) and packed (weight, for dx).
/// A form that is not given is packed here, unless there are few rows. A weight that lies in blocks
/// is given as `blocks`, which has no gradient.
template <class T>
struct LinearCrossEntropy {
  Rows<const T> x = {};
  Rows<const T> weight = {};
  const BlockMatrix* blocks = nullptr;  ///< in the place of `weight`; T is float
  Vec<const T> bias = {};
  const PackedMatrix<T>* packed_transposed = nullptr;
  const PackedMatrix<T>* packed = nullptr;
  Targets targets = {};
  double scale = 1;
  double softcap = 0;
  Vec<T> losses = {};
  Rows<T> dx = {};
  Rows<T> dweight = {};
  Store dweight_store = Store::kWrite;
  Vec<T> dbias = {};
  Store dbias_store = Store::kWrite;
};

/// How many of N rows of logits [N, V] linear_cross_entropy computes at once. (By blocks it
/// computes at least C at once: the weight is widened for each such part.)
template <class T>
index logit_rows(index N, index V);

/// As cross_entropy of the projection, in chunks of logit_rows() rows: more logits never exist at
/// once. Ignored rows cost nothing. Same bits for any number of threads.
template <class T>
CrossEntropy linear_cross_entropy(const Context& ctx, const LinearCrossEntropy<T>& a);

// Binary cross-entropy of logits, each a question of its own: several labels for a text, or two
// classes with one logit.

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
