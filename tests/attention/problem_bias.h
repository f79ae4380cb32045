// SPDX-License-Identifier: Apache-2.0
// The biases of a random problem.
#pragma once

#include <vector>

#include "tests/attention/problem.h"

namespace fovea::testing {

template <class V>
ScoreView<V> dense_view(const ProblemShape& s, V* data) {
  return ScoreView<V>::contiguous(data, s.dense_batch ? s.B : 1, s.dense_heads ? s.H : 1,
                                  s.dense_queries ? s.T : 1, s.S);
}

/// Parameters of the biases in one precision, and their gradients.
template <class T>
struct BiasMemory {
  std::vector<T> slopes, t5, dense, dslopes, dt5, ddense;

  explicit BiasMemory(const Problem& p)
      : slopes(p.slopes.begin(), p.slopes.end()),
        t5(p.t5.begin(), p.t5.end()),
        dense(p.dense.begin(), p.dense.end()),
        dslopes(slopes.size(), p.shape.alibi ? T{-77} : T{0}),
        dt5(t5.size(), p.shape.t5 ? T{-77} : T{0}),
        ddense(dense.size(), p.shape.dense ? T{-77} : T{0}) {}

  Bias<T> parts(const ProblemShape& s) {
    Bias<T> sum;
    if (s.softcap > 0) sum = bias::Softcap<T>(s.softcap);
    if (s.alibi) sum = sum + bias::Alibi<T>({slopes.data(), s.H}, {dslopes.data(), s.H});
    if (s.t5) {
      sum = sum + bias::T5<T>(Rows<const T>(t5.data(), kBuckets, s.H),
                              Rows<T>(dt5.data(), kBuckets, s.H));
    }
    if (s.dense) {
      sum =
          sum + bias::Dense<T>(dense_view<const T>(s, dense.data()), dense_view(s, ddense.data()));
    }
    return sum;
  }
};

}  // namespace fovea::testing
