// SPDX-License-Identifier: Apache-2.0
// What a random problem writes for each row and each score.
#pragma once

#include <vector>

#include "tests/attention/support/problem.h"

namespace fovea::testing {

template <class T>
RowView<T> row_view(std::vector<T>& values, const ProblemShape& s) {
  values.assign(static_cast<std::size_t>(s.B * s.H * s.T), T{-77});
  if (s.rows_first) return {values.data(), s.B, s.H, s.T, s.H * s.T, 1, s.H};
  return RowView<T>::contiguous(values.data(), s.B, s.H, s.T);
}

template <class T>
ScoreView<T> score_view(std::vector<T>& values, const ProblemShape& s) {
  values.assign(static_cast<std::size_t>(s.B * s.H * s.T * s.S), T{-77});
  if (!s.rows_first) return ScoreView<T>::contiguous(values.data(), s.B, s.H, s.T, s.S);
  return {values.data(), s.B, s.H, s.T, s.S, s.H * s.T * s.S, s.S, s.H * s.S};
}

template <class T>
ScoreView<T> top_view(std::vector<T>& values, const ProblemShape& s) {
  return ScoreView<T>::contiguous(values.data(), s.B, s.H, s.T, kTop);
}

// What the observers of a problem write.
template <class T>
struct ObserverMemory {
  std::vector<T> entropy, maximum, distance, topk_weight, column_mass;
  std::vector<std::int32_t> topk_index;

  Observe<T> parts(const ProblemShape& s) {
    const index rows = s.B * s.H * s.T;
    topk_weight.assign(static_cast<std::size_t>(rows * kTop), T{-77});
    topk_index.assign(topk_weight.size(), -77);
    column_mass.assign(static_cast<std::size_t>(s.B * s.H * s.S), T{-77});
    const Observe<T> of_rows = observe::Entropy<T>(row_view(entropy, s)) +
                               observe::Maximum<T>(row_view(maximum, s)) +
                               observe::Distance<T>(row_view(distance, s)) +
                               observe::TopK<T>(top_view(topk_index, s), top_view(topk_weight, s));
    if (s.watch == Watch::kRows) return of_rows;
    return of_rows +
           observe::ColumnMass<T>(RowView<T>::contiguous(column_mass.data(), s.B, s.H, s.S));
  }
};

}  // namespace fovea::testing
