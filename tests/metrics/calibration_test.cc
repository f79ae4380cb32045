// SPDX-License-Identifier: Apache-2.0
// golden_test.cc compares the errors with the formula of Guo et al.
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"
#include "fovea/metrics/probabilities.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(Reliability, BinsHoldTheirUpperEdge) {
  const std::vector<double> p = {0, 0.2, 0.20001, 0.4, 0.6, 0.61, 1};
  const std::vector<std::uint8_t> truth = {0, 1, 0, 1, 1, 0, 1};
  const ReliabilityTable table = reliability<double>(p, truth, 5);
  std::vector<index> counts;
  for (const ReliabilityBin& bin : table.bins) counts.push_back(bin.count);
  EXPECT_THAT(counts, testing::ElementsAre(2, 2, 1, 1, 1));
  EXPECT_EQ(table.examples, 7);
  EXPECT_EQ(table.bins[0].confidence, 0.1);
  EXPECT_EQ(table.bins[0].accuracy, 0.5);
  EXPECT_EQ(table.bins[1].low, 0.2);
  EXPECT_EQ(table.bins[1].high, 0.4);
}

// Each edge m / bins and the numbers beside it, for numbers of bins whose product rounds.
TEST(Reliability, EveryEdgeIsInTheBinThatItEnds) {
  for (const index bins : {1, 3, 7, 10, 15, 49, 1000}) {
    for (index m = 1; m <= bins; ++m) {
      const double edge = static_cast<double>(m) / static_cast<double>(bins);
      const std::vector<double> p = {std::nextafter(edge, 0), edge, std::nextafter(edge, 2)};
      const std::size_t inside = m == bins ? 2 : 3;
      const std::vector<std::uint8_t> truth(inside, 1);
      const auto table = reliability<double>({p.data(), static_cast<index>(inside)}, truth, bins);
      ASSERT_EQ(table.bins[static_cast<std::size_t>(m - 1)].count, 2) << m << " of " << bins;
    }
  }
}

TEST(Reliability, OfTheMostLikelyClass) {
  const std::vector<float> p = {0.75f, 0.25f, 0, 0.25f, 0.25f, 0.5f, 0.5f, 0.5f, 0};
  const std::vector<std::int32_t> truth = {0, 0, 1};
  const ReliabilityTable table = reliability<float>({p.data(), 3, 3}, truth, 4);
  EXPECT_EQ(table.bins[2].count, 1);
  EXPECT_EQ(table.bins[2].accuracy, 1);
  EXPECT_EQ(table.bins[1].count, 2);
  EXPECT_EQ(table.bins[1].accuracy, 0);  // of equal probabilities the first counts
  EXPECT_EQ(table.bins[1].confidence, 0.5);
  EXPECT_NEAR(table.ece, 1.0 / 3 * 0.25 + 2.0 / 3 * 0.5, 1e-15);
  EXPECT_EQ(table.mce, 0.5);
}

TEST(Reliability, OfCalibratedProbabilitiesHasALowError) {
  Random random(1, RandomUse::kTest);
  std::vector<double> p, bold;
  std::vector<std::uint8_t> truth;
  for (int i = 0; i < 40000; ++i) {
    p.push_back(random.uniform());
    bold.push_back(p.back() < 0.5 ? p.back() / 2 : (1 + p.back()) / 2);
    truth.push_back(random.uniform() < p.back());
  }
  EXPECT_LT(reliability<double>(p, truth).ece, 0.02);
  EXPECT_NEAR(reliability<double>(bold, truth).ece, 0.125, 0.02);
}

TEST(Reliability, RefusesBadInput) {
  const std::vector<double> p = {0.5, 0.5}, none = {}, scores = {-1, 2};
  const std::vector<std::int32_t> truth = {0}, outside = {2};
  const std::vector<std::uint8_t> flags = {0, 1}, no_flags = {}, odd = {0, 2};
  const Rows<const double> rows(p.data(), 1, 2);
  EXPECT_THROWS(reliability(rows, truth, 0), kShape, "reliability: bins must be at least 1");
  EXPECT_THROWS(reliability(rows, outside), kShape, "the labels of 2 classes are 0 to 1");
  EXPECT_THROWS(reliability<double>({p.data(), 2, 1}, truth), kShape, "1 true values, and 2");
  EXPECT_THROWS(reliability<double>({scores.data(), 1, 2}, truth), kOptionValue,
                "reliability: the probability of class 0 of example 0 is -1");
  EXPECT_THROWS(reliability<double>(p, odd), kOptionValue, "it must be 0 or 1");
  EXPECT_THROWS(reliability<double>(scores, flags), kOptionValue, "must be in [0, 1]");
  EXPECT_THROWS(reliability<double>(none, no_flags), kShape, "there are no examples");
}

}  // namespace
}  // namespace fovea
