// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "fovea/metrics/bootstrap.h"

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
