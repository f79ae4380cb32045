// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/regression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/metrics/inputs.h"
#include "fovea/metrics/sum.h"

namespace fovea {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

// Values, and their order; ascending.
struct Column {
  std::vector<double> values;
  std::vector<std::size_t> order;
};

struct Examples {
  Column truth, predicted;
  std::vector<double> squares, distances;
  std::vector<index> cells;  // each is one
};

Column column_of(std::vector<double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return {std::move(values), std::move(order)};
}

template <class T>
Examples examples_of(Vec<const T> truth, Vec<const T> predicted) {
  constexpr const char* kWhat = "regression_report";
  detail::check_lengths(kWhat, truth.size, predicted.size);
  Examples examples{.truth = column_of(detail::finite_values(kWhat, truth)),
                    .predicted = column_of(detail::finite_values(kWhat, predicted)),
                    .squares = {},
                    .distances = {},
                    .cells = std::vector<index>(static_cast<std::size_t>(truth.size), 1)};
  for (std::size_t n = 0; n < examples.cells.size(); ++n) {
    const double error = examples.truth.values[n] - examples.predicted.values[n];
    examples.squares.push_back(error * error);
    examples.distances.push_back(std::abs(error));
  }
  return examples;
}

// Whether all that counts is the same number.
bool is_constant(Vec<const double> x, Vec<const index> times) {
  index first = 0;
  while (times[first] == 0) ++first;
  for (index n = first; n < x.size; ++n) {
    if (times[n] != 0 && x[n] != x[first]) return false;
  }
  return true;
}

std::vector<double> centred(Vec<const double> x, Vec<const index> times) {
  const double mean = detail::weighted_mean(x, times);
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(x.size));
  for (const double value : x) all.push_back(value - mean);
  return all;
}

double product(Vec<const double> x, Vec<const double> y, Vec<const index> times) {
  detail::Sum sum;
  for (index n = 0; n < x.size; ++n) sum.add(static_cast<double>(times[n]) * (x[n] * y[n]));
  return sum.value();
}

// Divided by the largest of them, whose squares would overflow, or vanish, if it is far from 1. By
// a power of two, so that no bits are lost.
void scale_to_one(std::vector<double>& x, Vec<const index> times) {
  double most = 0;
  for (std::size_t n = 0; n < x.size(); ++n) {
    if (times[static_cast<index>(n)] != 0) most = std::max(most, std::abs(x[n]));
  }
  if (most == 0 || !std::isfinite(most)) return;
  const int exponent = std::ilogb(most);
  for (double& value : x) value = std::scalbn(value, -exponent);
}

double pearson(Vec<const double> x, Vec<const double> y, Vec<const index> times) {
  if (is_constant(x, times) || is_constant(y, times)) return kUndefined;
  const auto column = [&](Vec<const double> values) {
    std::vector<double> all(values.begin(), values.end());
    scale_to_one(all, times);
    all = centred(all, times);
    scale_to_one(all, times);
    return all;
  };
  const std::vector<double> dx = column(x), dy = column(y);
  const double norms = std::sqrt(product(dx, dx, times)) * std::sqrt(product(dy, dy, times));
  return std::clamp(product(dx, dy, times) / norms, -1.0, 1.0);
}

double r2(const Examples& examples, Vec<const index> times) {
  const std::vector<double>& y = examples.truth.values;
  const double wrong = detail::weighted_mean(examples.squares, times);
  if (std::accumulate(times.begin(), times.end(), index{0}) < 2) return kUndefined;
  if (wrong == 0) return 1;
  if (is_constant(y, times)) return 0;
  const std::vector<double> dy = centred(y, times);
  std::vector<double> squares;
  for (const double d : dy) squares.push_back(d * d);
  return 1 - wrong / detail::weighted_mean(squares, times);
}

// Where each counts times[n] times. A value that occurs c times after b smaller ones has the mean
// of the ranks b + 1 .. b + c.
std::vector<double> ranks(const Column& column, Vec<const index> times) {
  const std::vector<std::size_t>& order = column.order;
  std::vector<double> ranks(order.size());
  index below = 0;
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    const double value = column.values[order[begin]];
    index count = 0;
    for (; end < order.size() && column.values[order[end]] == value; ++end) {
      count += times[static_cast<index>(order[end])];
    }
    const double rank = static_cast<double>(below) + static_cast<double>(count + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = rank;
    below += count;
  }
  return ranks;
}

RegressionReport report_of(const Examples& examples, Vec<const index> times) {
  const Column &y = examples.truth, &p = examples.predicted;
  const std::vector<double> y_ranks = ranks(y, times), p_ranks = ranks(p, times);
  return {.examples = std::accumulate(times.begin(), times.end(), index{0}),
          .mse = detail::weighted_mean(examples.squares, times),
          .mae = detail::weighted_mean(examples.distances, times),
          .r2 = r2(examples, times),
          .pearson = pearson(y.values, p.values, times),
          .spearman = pearson(y_ranks, p_ranks, times)};
}

}  // namespace

template <class T>
RegressionReport regression_report(Vec<const T> truth, Vec<const T> predicted) {
  const Examples examples = examples_of(truth, predicted);
  return report_of(examples, examples.cells);
}

template <class T>
RegressionIntervals regression_intervals(const Context& ctx, Vec<const T> truth,
                                         Vec<const T> predicted, const BootstrapOptions& options) {
  const Examples examples = examples_of(truth, predicted);
  const auto of_resample = [&](Vec<const index> times) { return report_of(examples, times); };
  return detail::report_intervals<RegressionReportOf>(ctx, examples.cells, of_resample, options);
}

template RegressionReport regression_report(Vec<const float>, Vec<const float>);
template RegressionReport regression_report(Vec<const double>, Vec<const double>);
template RegressionIntervals regression_intervals(const Context&, Vec<const float>,
                                                  Vec<const float>, const BootstrapOptions&);
template RegressionIntervals regression_intervals(const Context&, Vec<const double>,
                                                  Vec<const double>, const BootstrapOptions&);

}  // namespace fovea
