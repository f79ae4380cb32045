// SPDX-License-Identifier: Apache-2.0
// The score of a random problem.
#pragma once

#include <vector>

#include "tests/attention/support/problem.h"

namespace fovea::testing {

/// The weights of the score in one precision, and their gradient.
template <class T>
struct ScoreMemory {
  std::vector<T> weights, dweights;

  explicit ScoreMemory(const Problem& p)
      : weights(p.score.begin(), p.score.end()), dweights(weights.size(), T{-77}) {}

  Score<T> score(const ProblemShape& s) {
    const index width = static_cast<index>(weights.size()) / s.H;
    const Rows<const T> w(weights.data(), s.H, width);
    const Rows<T> dw(dweights.data(), s.H, width);
    switch (s.score) {
      case ScoreKind::kDot:
        return score::Dot();
      case ScoreKind::kCosine:
        return score::Cosine{s.deviation};
      case ScoreKind::kConcat:
        return score::Concat<T>{w, dw};
      case ScoreKind::kL2:
        return score::L2();
      case ScoreKind::kAdditive:
        return score::Additive<T>{w, dw};
    }
    return score::Dot();
  }
};

}  // namespace fovea::testing
