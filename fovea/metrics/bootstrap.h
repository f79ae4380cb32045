// SPDX-License-Identifier: Apache-2.0
// Bootstrap percentile intervals (Efron 1979, "Bootstrap methods: another look at the jackknife";
// Efron, Tibshirani 1993, "An introduction to the bootstrap", section 13.3).
// A resample of a set of examples has as many as there are, drawn with replacement.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/random.h"
#include "fovea/base/view.h"

namespace fovea {

/// A number, and the interval that holds the given share of its values over the resamples.
struct Interval {
  double value = 0;  ///< on the examples themselves
  double low = 0;    ///< NaN, like high, if no resample defines the number
  double high = 0;
  index undefined =
      0;  ///< resamples that do not define it, such as one class for roc_auc; left out
};

struct BootstrapOptions {
  index resamples = 1000;
  double confidence = 0.95;
  std::uint64_t seed = 0;
};

/// Writes the numbers of a resample in which cell i occurs times[i] times; NaN where they are not
/// defined. Called from several threads at once.
using ResampleNumbers = std::function<void(Vec<const index> times, Vec<double> numbers)>;

/// Intervals of `count` numbers of a set of examples. The examples of a cell are alike for these
/// numbers, and cells[i] is how many there are. (All ones if each example is a cell.) A resample
/// draws as many examples as there are, with replacement.
///
/// The ends are the quantiles (1 - confidence) / 2 and (1 + confidence) / 2 over the resamples,
/// interpolated linearly between order statistics (numpy.percentile's default). The same seed and
/// examples give the same bits for any number of threads. The result does not depend on which
/// numbers are asked for together.
///
/// Throws Error(kOptionValue) unless resamples >= 1 and 0 < confidence < 1, Error(kShape) without
/// examples.
std::vector<Interval> bootstrap(const Context& ctx, Vec<const index> cells, index count,
                                const ResampleNumbers& numbers,
                                const BootstrapOptions& options = {});

/// [count, resamples]: the numbers of each resample, of which bootstrap makes intervals. Throws as
/// bootstrap does.
std::vector<double> resampled_numbers(const Context& ctx, Vec<const index> cells, index count,
                                      const ResampleNumbers& numbers,
                                      const BootstrapOptions& options = {});

/// The interval of a number that has these values in the resamples.
Interval interval_of(double value, Vec<const double> resamples, double confidence);

/// The interval of the mean of one value for each example, such as its loss.
Interval bootstrap_mean(const Context& ctx, Vec<const double> values,
                        const BootstrapOptions& options = {});

/// The mean of a few measurements, such as those of the folds of cross-validation, and its 95 %
/// interval by Student's t: mean +- t s / sqrt(n), with n - 1 degrees of freedom. The interval of a
/// single value is not defined: NaN. Throws kShape without values.
Interval mean_interval(std::span<const double> values);

namespace detail {

/// The intervals of all numbers of a report. Report<double> and Report<Interval> have the members
/// visit_numbers(self, f), which calls f for each number, and take_sizes(other), which copies what
/// is not a number. `report_of(times)` makes the report of a resample.
template <template <class> class Report, class ReportOf>
Report<Interval> report_intervals(const Context& ctx, Vec<const index> cells,
                                  const ReportOf& report_of, const BootstrapOptions& options) {
  using Numbers = Report<double>;
  const Numbers whole = report_of(cells);
  index count = 0;
  Numbers::visit_numbers(whole, [&](auto&&, double) { ++count; });
  const auto numbers = [&](Vec<const index> times, Vec<double> out) {
    const Numbers report = report_of(times);
    index next = 0;
    Numbers::visit_numbers(report, [&](auto&&, double number) { out[next++] = number; });
  };
  const std::vector<Interval> intervals = bootstrap(ctx, cells, count, numbers, options);
  Report<Interval> result;
  result.take_sizes(whole);
  auto next = intervals.begin();
  Report<Interval>::visit_numbers(result, [&](auto&&, Interval& number) { number = *next++; });
  return result;
}

}  // namespace detail
}  // namespace fovea

namespace fovea::detail {

/// Uniform in [0, n), 1 <= n < 2^32, without bias, from one word as a rule (Lemire 2019, "Fast
/// random integer generation in an interval", algorithm 5).
std::uint32_t uniform_below(Random& random, std::uint32_t n);

/// How many of n >= 0 trials succeed, each with probability p in [0, 1]. If few are expected, by
/// inversion; else by BTRS of Hörmann 1993, "The generation of binomial random variates". Both are
/// exact.
index binomial(Random& random, index n, double p);

/// Examples in cells: those of a cell are alike for what is computed of a resample. So it is enough
/// to know how often each cell is drawn, and with few cells that is far less work than to draw each
/// example.
class Multinomial {
 public:
  /// cells[i] >= 0: how many examples are in cell i. The view must outlive this object.
  explicit Multinomial(Vec<const index> cells);

  index examples() const { return examples_; }
  /// How often each cell is drawn when examples() are drawn with replacement.
  void draw(Random& random, Vec<index> times) const;

 private:
  void draw_examples(Random& random, Vec<index> times) const;
  void draw_cells(Random& random, Vec<index> times) const;

  Vec<const index> cells_;
  index examples_ = 0;
  std::vector<std::uint32_t> cell_of_;  // of each example; empty if cells are drawn
};

}  // namespace fovea::detail
