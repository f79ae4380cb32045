// SPDX-License-Identifier: Apache-2.0
// Isotonic calibration: the ascending steps that fit what was true best (Zadrozny & Elkan 2002,
// "Transforming classifier scores into accurate multiclass probability estimates").
#pragma once

#include <span>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// From log-odds to a probability: straight between the points, and level beyond them.
struct IsotonicMap {
  std::vector<float> log_odds = {};       ///< ascending
  std::vector<float> probabilities = {};  ///< [log_odds] ascending, in (0, 1)

  double operator()(double log_odds) const;
};

/// A text: what a model says of it, and whether it was true.
struct IsotonicText {
  float log_odds = 0;
  bool is_true = false;
  double weight = 1;
};

/// The map of least squares, by pooling adjacent violators (Ayer et al. 1955). Each pool counts as
/// if it held one more text (of weight 1), which is as true as the log-odds of the pool say: no
/// probability is 0 or 1, and a pool of few texts stays near what the model says. There must be a
/// text.
IsotonicMap fit_isotonic(std::vector<IsotonicText> texts);

}  // namespace fovea
