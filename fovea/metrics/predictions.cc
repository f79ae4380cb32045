// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/predictions.h"

#include <algorithm>
#include <cmath>

#include "fovea/base/check.h"

namespace fovea {

namespace {

template <class T>
void check_numbers(const char* what, Rows<const T> scores) {
  for (index n = 0; n < scores.rows; ++n) {
    for (index k = 0; k < scores.columns; ++k) {
      if (std::isnan(scores[n][k])) {
        fail(ErrorCode::kOptionValue, Hint{"find out where the model begins to compute NaN"},
             "{}: score {} of example {} is NaN", what, k, n);
      }
    }
  }
}

}  // namespace

template <class T>
std::vector<std::int32_t> most_likely_classes(Rows<const T> scores) {
  check(scores.columns >= 1, "most_likely_classes: scores must have a column for each class");
  check_numbers("most_likely_classes", scores);
  std::vector<std::int32_t> classes;
  classes.reserve(static_cast<std::size_t>(scores.rows));
  for (index n = 0; n < scores.rows; ++n) {
    const T* row = scores[n];
    classes.push_back(static_cast<std::int32_t>(std::max_element(row, row + scores.columns) - row));
  }
  return classes;
}

template <class T>
std::vector<std::uint8_t> labels_above(Rows<const T> probabilities, double threshold) {
  check_numbers("labels_above", probabilities);
  std::vector<std::uint8_t> labels;
  labels.reserve(static_cast<std::size_t>(probabilities.rows * probabilities.columns));
  for (index n = 0; n < probabilities.rows; ++n) {
    for (index k = 0; k < probabilities.columns; ++k) {
      labels.push_back(static_cast<double>(probabilities[n][k]) >= threshold ? 1 : 0);
    }
  }
  return labels;
}

template std::vector<std::int32_t> most_likely_classes(Rows<const float>);
template std::vector<std::int32_t> most_likely_classes(Rows<const double>);
template std::vector<std::uint8_t> labels_above(Rows<const float>, double);
template std::vector<std::uint8_t> labels_above(Rows<const double>, double);

}  // namespace fovea
