// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/metrics/classification.h"
#include "fovea/metrics/regression.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The mean of i over the examples of cells i.
void mean_cell(Vec<const index> times, Vec<double> out) {
  double sum = 0, count = 0;
  for (index i = 0; i < times.size; ++i) {
    sum += static_cast<double>(i * times[i]);
    count += static_cast<double>(times[i]);
  }
  out[0] = sum / count;
}

TEST(Bootstrap, EndsAreQuantilesOfTheResamples) {
  const std::vector<index> cells(30, 1);
  std::vector<double> seen;
  const auto record = [&](Vec<const index> times, Vec<double> out) {
    mean_cell(times, out);
    seen.push_back(out[0]);
  };
  const BootstrapOptions options{.resamples = 42, .confidence = 0.9, .seed = 5};
  const Interval interval = bootstrap(Context(1), cells, 1, record, options).front();
  ASSERT_EQ(seen.size(), 43u);  // the last is the whole
  EXPECT_EQ(interval.value, seen.back());
  seen.pop_back();
  std::sort(seen.begin(), seen.end());
  // Places .05 * 41 = 2.05 and .95 * 41 = 38.95.
  EXPECT_NEAR(interval.low, seen[2] + 0.05 * (seen[3] - seen[2]), 1e-12);
  EXPECT_NEAR(interval.high, seen[38] + 0.95 * (seen[39] - seen[38]), 1e-12);
  EXPECT_EQ(interval.undefined, 0);
}

TEST(Bootstrap, MeanHasTheIntervalOfItsStandardError) {
  std::vector<double> values;
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 2000; ++i) values.push_back(random.normal());
  const Interval interval = bootstrap_mean(Context(2), values, {.resamples = 4000});
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / 2000;
  const double half = 1.96 / std::sqrt(2000);
  EXPECT_NEAR(interval.value, mean, 1e-12);
  EXPECT_NEAR(interval.low, mean - half, 0.1 * half);
  EXPECT_NEAR(interval.high, mean + half, 0.1 * half);
}

// 95 intervals of 100 hold the true mean.
TEST(Bootstrap, IntervalsCoverTheTruth) {
  int covered = 0;
  for (std::uint64_t round = 0; round < 400; ++round) {
    Random random(9, RandomUse::kTest, round);
    std::vector<double> values;
    for (int i = 0; i < 100; ++i) values.push_back(random.uniform());
    const Interval interval = bootstrap_mean(Context(1), values, {.resamples = 200, .seed = round});
    covered += interval.low <= 0.5 && 0.5 <= interval.high ? 1 : 0;
  }
  EXPECT_GT(covered, 0.90 * 400);
  EXPECT_LT(covered, 0.98 * 400);
}

TEST(Bootstrap, CellsAndExamplesGiveTheSameIntervals) {
  const std::vector<index> cells = {400, 300, 200, 100};
  std::vector<index> ones(1000, 1);
  const auto by_example = [&](Vec<const index> times, Vec<double> out) {
    std::vector<index> sums(4);
    index n = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      for (const index end = n + cells[i]; n < end; ++n) sums[i] += times[n];
    }
    mean_cell(sums, out);
  };
  const BootstrapOptions options{.resamples = 8000};
  const Interval a = bootstrap(Context(2), cells, 1, mean_cell, options).front();
  const Interval b = bootstrap(Context(2), ones, 1, by_example, options).front();
  EXPECT_EQ(a.value, b.value);
  EXPECT_NEAR(a.low, b.low, 0.1 * (a.high - a.low));
  EXPECT_NEAR(a.high, b.high, 0.1 * (a.high - a.low));
}

template <class Report>
std::vector<std::uint64_t> bits(const Report& report) {
  std::vector<std::uint64_t> all;
  Report::visit_numbers(report, [&](const NumberName&, const Interval& interval) {
    for (const double x : {interval.value, interval.low, interval.high}) {
      all.push_back(std::bit_cast<std::uint64_t>(x));
    }
  });
  return all;
}

TEST(Bootstrap, SameBitsForAnyNumberOfThreadsAndOthersForAnotherSeed) {
  std::vector<double> y, p;
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 500; ++i) {
    y.push_back(random.normal());
    p.push_back(y.back() + random.normal());
  }
  const ConfusionMatrix confusion{2, {9000, 1000, 2000, 8000}};
  const auto numbers = [&](const Context& ctx, std::uint64_t seed) {
    const BootstrapOptions options{.resamples = 300, .seed = seed};
    auto all = bits(regression_intervals<double>(ctx, y, p, options));
    const auto more = bits(classification_intervals(ctx, confusion, options));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const auto expected = numbers(Context(1), 3);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(numbers(Context(threads), 3), expected) << threads;
  EXPECT_NE(numbers(Context(1), 4), expected);
}

TEST(Bootstrap, UndefinedResamplesAreLeftOutAndCounted) {
  const std::vector<index> cells = {1, 1};
  const auto first_if_any = [](Vec<const index> times, Vec<double> out) {
    out[0] = times[0] == 0 ? kNan : static_cast<double>(times[0]);
    out[1] = kNan;
  };
  const auto intervals = bootstrap(Context(1), cells, 2, first_if_any, {.resamples = 1000});
  EXPECT_EQ(intervals[0].low, 1);
  EXPECT_EQ(intervals[0].high, 2);
  EXPECT_NEAR(static_cast<double>(intervals[0].undefined), 250, 80);
  EXPECT_EQ(intervals[1].undefined, 1000);
  EXPECT_TRUE(std::isnan(intervals[1].low) && std::isnan(intervals[1].high));
}

TEST(Bootstrap, RefusesWhatItCannotDo) {
  const Context ctx(1);
  const std::vector<index> cells = {3}, none = {}, negative = {4, -1};
  EXPECT_THROWS(bootstrap(ctx, cells, 1, mean_cell, {.resamples = 0}), kOptionValue,
                "bootstrap: resamples must be at least 1; it is 0");
  for (const double confidence : {0.0, 1.0, kNan}) {
    EXPECT_THROWS(bootstrap(ctx, cells, 1, mean_cell, {.confidence = confidence}), kOptionValue,
                  "confidence must be between 0 and 1");
  }
  EXPECT_THROWS(bootstrap(ctx, none, 1, mean_cell), kShape, "no examples");
  EXPECT_THROWS(bootstrap(ctx, negative, 1, mean_cell), kShape, "a cell holds -1 examples");
  EXPECT_THROWS(bootstrap_mean(ctx, {}), kShape, "no examples");
}

}  // namespace
}  // namespace fovea

namespace fovea::detail {
namespace {

// How far counts of draws are from what their probabilities lead to expect, in standard deviations
// of chi squared. Rare values are taken together.
double chi_squared_deviation(const std::vector<index>& counts, const std::vector<double>& p) {
  const auto draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), index{0}));
  double chi = 0, groups = 0, expected = 0, found = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    expected += p[k] * draws;
    found += static_cast<double>(counts[k]);
    if (expected < 10 && k + 1 < p.size()) continue;
    if (expected > 0) chi += (found - expected) * (found - expected) / expected;
    groups += 1;
    expected = found = 0;
  }
  return (chi - (groups - 1)) / std::sqrt(2 * groups);
}

std::vector<double> binomial_distribution(index n, double p) {
  std::vector<double> all;
  for (double k = 0; k <= static_cast<double>(n); ++k) {
    const double rest = static_cast<double>(n) - k;
    all.push_back(std::exp(std::lgamma(static_cast<double>(n) + 1) - std::lgamma(k + 1) -
                           std::lgamma(rest + 1) + k * std::log(p) + rest * std::log1p(-p)));
  }
  return all;
}

TEST(UniformBelow, AllAreAsLikely) {
  for (const std::uint32_t n : {1u, 2u, 7u, 100u}) {
    Random random(n, RandomUse::kTest);
    std::vector<index> counts(n);
    for (int i = 0; i < 20000; ++i) ++counts[uniform_below(random, n)];
    EXPECT_LT(chi_squared_deviation(counts, std::vector<double>(n, 1.0 / n)), 5) << n;
  }
}

TEST(UniformBelow, HasNoBiasWhereTheRangeDoesNotDivideTheWords) {
  constexpr std::uint32_t kThirds =
      0xC0000000u;  // without rejection one value in three is twice as likely
  Random random(1, RandomUse::kTest);
  std::vector<index> counts(3);
  for (int i = 0; i < 20000; ++i) {
    const std::uint32_t value = uniform_below(random, kThirds);
    ASSERT_LT(value, kThirds);
    ++counts[value % 3];
  }
  EXPECT_LT(chi_squared_deviation(counts, std::vector<double>(3, 1.0 / 3)), 5);
}

TEST(Binomial, FollowsItsDistribution) {
  struct {
    index n;
    double p;
  } cases[] = {{1, 0.3},  {20, 0.02},  {20, 0.5},  {99, 0.1},     {100, 0.1},
               {60, 0.5}, {300, 0.25}, {300, 0.9}, {5000, 0.003}, {5000, 0.4}};
  for (const auto& [n, p] : cases) {
    Random random(static_cast<std::uint64_t>(n), RandomUse::kTest);
    std::vector<index> counts(static_cast<std::size_t>(n) + 1);
    for (int i = 0; i < 50000; ++i) ++counts[static_cast<std::size_t>(binomial(random, n, p))];
    EXPECT_LT(std::abs(chi_squared_deviation(counts, binomial_distribution(n, p))), 5)
        << n << ' ' << p;
  }
}

TEST(Binomial, EndsAreCertain) {
  Random random(1, RandomUse::kTest);
  EXPECT_EQ(binomial(random, 0, 0.4), 0);
  EXPECT_EQ(binomial(random, 9, 0), 0);
  EXPECT_EQ(binomial(random, 9, 1), 9);
  for (int i = 0; i < 100; ++i) {
    const index few = binomial(random, 1'000'000'000, 1e-9);
    EXPECT_GE(few, 0);
    EXPECT_LT(few, 20);
  }
}

// Cells of these sizes, drawn through examples (few in each) or through cells (many).
void expect_moments(const std::vector<index>& cells) {
  const Multinomial multinomial(cells);
  const auto n = static_cast<double>(multinomial.examples());
  constexpr int kResamples = 4000;
  std::vector<double> sum(cells.size()), squares(cells.size());
  std::vector<index> times(cells.size());
  double product = 0;  // of the first two
  for (std::uint64_t r = 0; r < kResamples; ++r) {
    Random random(3, RandomUse::kTest, r);
    multinomial.draw(random, times);
    ASSERT_EQ(std::accumulate(times.begin(), times.end(), index{0}), multinomial.examples());
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto count = static_cast<double>(times[i]);
      sum[i] += count;
      squares[i] += count * count;
    }
    product += static_cast<double>(times[0] * times[1]);
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const double mean = sum[i] / kResamples, expected = static_cast<double>(cells[i]);
    const double variance = squares[i] / kResamples - mean * mean;
    EXPECT_NEAR(mean, expected, 5 * std::sqrt(expected / kResamples)) << i;
    EXPECT_NEAR(variance, expected * (1 - expected / n), 0.15 * expected) << i;
  }
  const double covariance = product / kResamples - sum[0] * sum[1] / kResamples / kResamples;
  const double expected = -static_cast<double>(cells[0] * cells[1]) / n;
  EXPECT_NEAR(covariance, expected, 0.15 * std::sqrt(static_cast<double>(cells[0] * cells[1])));
}

TEST(Multinomial, HasTheMomentsOfDrawsWithReplacement) {
  expect_moments({5, 3, 0, 1, 1});
  expect_moments({500, 300, 0, 190, 10, 0});
  expect_moments({40, 60, 0});
}

TEST(Multinomial, OneCellGetsAllDraws) {
  for (const index count : {index{1}, index{1000}, index{1} << 40}) {
    const std::vector<index> cells = {0, count, 0};
    Random random(1, RandomUse::kTest);
    std::vector<index> times(3);
    Multinomial(cells).draw(random, times);
    EXPECT_EQ(times, cells);
  }
}

}  // namespace
}  // namespace fovea::detail

namespace fovea {
namespace {

// t and the interval by scipy.stats.t.interval(.95, n - 1, mean, sem) 1.10.
TEST(MeanInterval, IsThatOfStudentsT) {
  const Interval two = mean_interval(std::vector<double>{1, 3});
  EXPECT_DOUBLE_EQ(two.value, 2);
  EXPECT_NEAR(two.low, 2 - 12.7062047, 1e-5);
  const Interval five = mean_interval(std::vector<double>{.8, .82, .79, .85, .84});
  EXPECT_NEAR(five.value, .82, 1e-12);
  EXPECT_NEAR(five.high - five.value, 2.7764451 * std::sqrt(.0026 / 4 / 5), 1e-6);
  std::vector<double> many;
  for (int n = 0; n < 21; ++n) many.push_back(n);  // 20 degrees of freedom: 2.0859634
  EXPECT_NEAR(mean_interval(many).high - 10, 2.0859634 * std::sqrt(770.0 / 20 / 21), 1e-3);
}

TEST(MeanInterval, HasNoneOfOneValue) {
  EXPECT_TRUE(std::isnan(mean_interval(std::vector<double>{1}).low));
  EXPECT_THROW(mean_interval({}), Error);
}

}  // namespace
}  // namespace fovea
