// SPDX-License-Identifier: Apache-2.0
// The numbers of one update of AdamW, for its kernels.
#pragma once

#include <cmath>

#include "fovea/kernel/adamw.h"

namespace fovea::detail {

/// Each rounded once.
template <class T>
struct AdamWFactors {
  T gradient_scale;
  T rate1;  // 1 - beta1: m += rate1 (g - m)
  T rate2;  // 1 - beta2
  T root;   // 1 / sqrt(1 - beta2^step)
  T epsilon;
  T step_size;  // lr / (1 - beta1^step)
  T shrink;     // lr times the weight decay of the slot
};

/// Values, with their gradient and moments.
template <class T>
struct AdamWRun {
  T* value;
  const T* gradient;
  T *m, *v;
};

inline AdamWFactors<double> adamw_factors(const AdamWStep& step) {
  const AdamWOptions& o = step.options;
  const auto t = static_cast<double>(step.step);
  return {.gradient_scale = step.gradient_scale,
          .rate1 = 1 - o.beta1,
          .rate2 = 1 - o.beta2,
          .root = 1 / std::sqrt(1 - std::pow(o.beta2, t)),
          .epsilon = o.epsilon,
          .step_size = o.lr / (1 - std::pow(o.beta1, t)),
          .shrink = o.lr * o.weight_decay};
}

/// For a slot: `decay` multiplies the weight decay.
template <class T>
AdamWFactors<T> rounded(const AdamWFactors<double>& f, double decay) {
  return {.gradient_scale = static_cast<T>(f.gradient_scale),
          .rate1 = static_cast<T>(f.rate1),
          .rate2 = static_cast<T>(f.rate2),
          .root = static_cast<T>(f.root),
          .epsilon = static_cast<T>(f.epsilon),
          .step_size = static_cast<T>(f.step_size),
          .shrink = static_cast<T>(f.shrink * decay)};
}

}  // namespace fovea::detail
