// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/inputs.h"

#include <cmath>
#include <string>

#include "fovea/base/check.h"

namespace fovea::detail {

namespace {

constexpr Hint kNotFinite{"find out where the model begins to compute numbers that are not finite"};
constexpr Hint kNotProbabilities{"give probabilities: scores first go through softmax or sigmoid"};

double probability(std::string_view what, double p, const auto& place) {
  if (!(p >= 0 && p <= 1)) {
    fail(ErrorCode::kOptionValue, std::isnan(p) ? kNotFinite : kNotProbabilities,
         "{}: the probability of {} is {}; it must be in [0, 1]", what, place(), p);
  }
  return p;
}

}  // namespace

void check_lengths(std::string_view what, index truth, index predicted) {
  check(truth == predicted, Hint{"give one prediction for each example"},
        "{}: there are {} true values, and {} predicted ones", what, truth, predicted);
  check(truth > 0, Hint{"give at least one example"}, "{}: there are no examples", what);
}

void check_labels(std::string_view what, std::string_view name, Vec<const std::int32_t> labels,
                  index classes) {
  check(classes >= 1, "{}: the number of classes must be at least 1; it is {}", what, classes);
  for (index n = 0; n < labels.size; ++n) {
    check(labels[n] >= 0 && labels[n] < classes, Hint{"number the classes from 0"},
          "{}: the {} label of example {} is {}; the labels of {} classes are 0 to {}", what, name,
          n, labels[n], classes, classes - 1);
  }
}

void check_flags(std::string_view what, std::string_view name, Vec<const std::uint8_t> flags) {
  for (index n = 0; n < flags.size; ++n) {
    if (flags[n] > 1) {
      fail(ErrorCode::kOptionValue, Hint{"say 1 where a label applies, else 0"},
           "{}: {} {} is {}; it must be 0 or 1", what, name, n, static_cast<int>(flags[n]));
    }
  }
}

template <class T>
std::vector<double> finite_values(std::string_view what, Vec<const T> values) {
  for (index n = 0; n < values.size; ++n) {
    if (!std::isfinite(values[n])) {
      fail(ErrorCode::kOptionValue, kNotFinite, "{}: the value of example {} is {}", what, n,
           values[n]);
    }
  }
  return {values.begin(), values.end()};
}

template <class T>
std::vector<double> probabilities_of(std::string_view what, Vec<const T> values) {
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(values.size));
  for (index n = 0; n < values.size; ++n) {
    all.push_back(probability(what, static_cast<double>(values[n]),
                              [&] { return fmt::format("example {}", n); }));
  }
  return all;
}

template <class T>
std::vector<double> distributions_of(std::string_view what, Rows<const T> rows) {
  constexpr double kLargestError = 1e-3;  // that of float32 with a million classes is smaller
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(rows.rows * rows.columns));
  for (index n = 0; n < rows.rows; ++n) {
    double sum = 0;
    for (index k = 0; k < rows.columns; ++k) {
      const auto place = [&] { return fmt::format("class {} of example {}", k, n); };
      all.push_back(probability(what, static_cast<double>(rows[n][k]), place));
      sum += all.back();
    }
    if (!(std::abs(sum - 1) <= kLargestError)) {
      fail(ErrorCode::kOptionValue, kNotProbabilities,
           "{}: the probabilities of example {} add up to {}; they must add up to 1", what, n, sum);
    }
  }
  return all;
}

template std::vector<double> finite_values(std::string_view, Vec<const float>);
template std::vector<double> finite_values(std::string_view, Vec<const double>);
template std::vector<double> probabilities_of(std::string_view, Vec<const float>);
template std::vector<double> probabilities_of(std::string_view, Vec<const double>);
template std::vector<double> distributions_of(std::string_view, Rows<const float>);
template std::vector<double> distributions_of(std::string_view, Rows<const double>);

}  // namespace fovea::detail
