// SPDX-License-Identifier: Apache-2.0
// Cross-entropy of the softmax (spec A5, T3), with targets that are ignored; alone, and fused with
// the projection that makes the logits.
#pragma once

#include <cstdint>

#include "fovea/base/context.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

template <class T>
class PackedMatrix;

/// targets [N], each in [0, V) or `ignore`: such rows have no loss and no gradient.
struct Targets {
  Vec<const std::int32_t> ids = {};
  std::int32_t ignore = -1;
};

/// How many rows have a target. Throws Error(kShape) that names place and value of one that is
/// neither `ignore` nor in [0, V).
index count_targets(const Targets& targets, index V);

/// Sum of the rows' losses, in ascending order in double, and the number of rows that have one; the
/// mean is total / count. With no row left total and count are 0, and so is every gradient.
struct CrossEntropy {
  double total = 0;
  index count = 0;
};

/// losses[n] = log(sum_v exp(logits[n,v])) - logits[n, target[n]];
/// dlogits[n,v] = scale * (softmax(logits[n])[v] - [v = target[n]]).
///
/// logits [N,V]; losses [N] in nats, 0 where ignored; dlogits [N,V], may be logits, may be left out
/// (default-made). A target whose logit is -inf has infinite loss.
template <class T>
CrossEntropy cross_entropy(const Context& ctx, InRows<T> logits, const Targets& targets,
                           double scale, Vec<T> losses, Rows<T> dlogits);

/// The arguments of linear_cross_entropy: logits = x weight^T + bias. x [N,C], weight [V,C], bias
/// [V] or left out. dx [N,C] is written, dweight [V,C] and dbias [V] are written or added to; each
/// may be left out (evaluation leaves out all). losses [N] may be left out. `scale` multiplies the
/// gradients alone: 1 / count_targets() makes them those of the mean. Who has the weight packed
/// already, as weight^T for the logits and as it is for dx, gives it; what is not given is packed
/// here, unless the rows are few.
template <class T>
struct LinearCrossEntropy {
  Rows<const T> x = {};
  Rows<const T> weight = {};
  Vec<const T> bias = {};
  const PackedMatrix<T>* packed_transposed = nullptr;
  const PackedMatrix<T>* packed = nullptr;
  Targets targets = {};
  double scale = 1;
  Vec<T> losses = {};
  Rows<T> dx = {};
  Rows<T> dweight = {};
  Store dweight_store = Store::kWrite;
  Vec<T> dbias = {};
  Store dbias_store = Store::kWrite;
};

/// How many of N rows of logits [N, V] linear_cross_entropy makes at once.
template <class T>
index logit_rows(index N, index V);

/// As cross_entropy of the projection, in chunks of rows: never more than 256 rows of logits exist.
/// Ignored rows cost nothing. Same bits for any number of threads.
template <class T>
CrossEntropy linear_cross_entropy(const Context& ctx, const LinearCrossEntropy<T>& a);

}  // namespace fovea
