// SPDX-License-Identifier: Apache-2.0
// Lion, the optimizer that moves by signs (Chen et al. 2023, "Symbolic Discovery of Optimization
// Algorithms", algorithm 2). It keeps one moment.
#pragma once

#include <span>

#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/kernel/adamw.h"

namespace fovea {

/// One parameter with its gradient and moment, all of one size. `decay` multiplies the weight
/// decay.
template <class T>
struct LionSlot {
  Vec<T> value = {};
  Vec<const T> gradient = {};
  Vec<T> m = {};
  double decay = 1;
};

/// One update, in one pass over memory; sign(0) = 0:
///   g = gradient_scale * gradient;  c = beta1 m + (1 - beta1) g;
///   value -= lr (sign(c) + decay weight_decay value);  m = beta2 m + (1 - beta2) g.
/// The epsilon and the number of the step are not read. Throws Error(kShape) if the sizes of a slot
/// disagree.
template <class T>
void lion(const Context& ctx, std::span<const LionSlot<T>> slots, const AdamWStep& step);

}  // namespace fovea
