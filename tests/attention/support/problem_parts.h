// SPDX-License-Identifier: Apache-2.0
// The biases and value parts of a random problem.
#pragma once

#include <vector>

#include "tests/attention/support/problem.h"
#include "tests/attention/support/relative_values.h"

namespace fovea::testing {

template <class V>
ScoreView<V> dense_view(const ProblemShape& s, V* data) {
  return ScoreView<V>::contiguous(data, s.dense_batch ? s.B : 1, s.dense_heads ? s.H : 1,
                                  s.dense_queries ? s.T : 1, s.S);
}

template <class T>
std::vector<double> doubles(const std::vector<T>& x) {
  return std::vector<double>(x.begin(), x.end());
}

/// Parameters of one part, and their gradient: as it was before, unless the problem has the part.
template <class T>
struct Learnt {
  std::vector<T> values, gradient;

  Learnt(const std::vector<float>& from, bool used)
      : values(from.begin(), from.end()), gradient(from.size(), used ? T{-77} : T{0}) {}
  Vec<const T> vec() const { return {values.data(), static_cast<index>(values.size())}; }
  Vec<T> dvec() { return {gradient.data(), static_cast<index>(gradient.size())}; }
  Rows<const T> rows(index columns) const { return {values.data(), vec().size / columns, columns}; }
  Rows<T> drows(index columns) { return {gradient.data(), vec().size / columns, columns}; }
};

/// All of them, in one precision.
template <class T>
struct PartMemory {
  Learnt<T> slopes, t5, dense, shaw_k, shaw_v, table;

  explicit PartMemory(const Problem& p)
      : slopes(p.slopes, p.shape.alibi),
        t5(p.t5, p.shape.t5),
        dense(p.dense, p.shape.dense),
        shaw_k(p.shaw_k, p.shape.shaw_keys),
        shaw_v(p.shaw_v, p.shape.shaw_values),
        table(p.table, p.shape.relative) {}

  Bias<T> bias_of(const ProblemShape& s) {
    Bias<T> sum;
    if (s.shaw_keys) sum = bias::Shaw<T>(shaw_k.rows(s.D), shaw_k.drows(s.D), s.order);
    if (s.softcap > 0) sum = sum + bias::Softcap<T>(s.softcap);
    if (s.alibi) sum = sum + bias::Alibi<T>(slopes.vec(), slopes.dvec());
    if (s.t5) sum = sum + bias::T5<T>(t5.rows(s.H), t5.drows(s.H));
    if (s.dense) {
      sum = sum + bias::Dense<T>(dense_view<const T>(s, dense.values.data()),
                                 dense_view(s, dense.gradient.data()));
    }
    return sum;
  }
  Values<T> values_of(const ProblemShape& s) {
    Values<T> sum;
    if (s.relative) sum = RelativeValues<T>(kClip, table.values, table.gradient);
    if (s.shaw_values) {
      sum = sum + values::Shaw<T>(shaw_v.rows(s.Dv), shaw_v.drows(s.Dv), s.order);
    }
    return sum;
  }
  void store(Results& results) const {
    results.dslopes = doubles(slopes.gradient);
    results.dt5 = doubles(t5.gradient);
    results.ddense = doubles(dense.gradient);
    results.dshaw_k = doubles(shaw_k.gradient);
    results.dshaw_v = doubles(shaw_v.gradient);
    results.dtable = doubles(table.gradient);
  }
};

}  // namespace fovea::testing
