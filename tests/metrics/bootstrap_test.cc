// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/bootstrap.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

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
