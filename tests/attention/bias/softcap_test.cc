// SPDX-License-Identifier: Apache-2.0
// Soft-capped scores at their ends: tiny, huge, infinite, not a number.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/attention/bias/scaling.h"
#include "tests/attention/support/call.h"
#include "tests/isa.h"
#include "tests/support/throws.h"

namespace fovea::testing {
namespace {

constexpr double kCap = 30;

template <class V>
std::vector<V> scores() {
  std::vector<V> values = {0, V{-0.0}};
  for (double x = 1e-30; x < 1e30; x *= 1.07) {
    values.push_back(static_cast<V>(x));
    values.push_back(static_cast<V>(-x));
  }
  return values;
}

// Errors in units of the last place; that of the slope, of 1.
template <class V>
void expect_exact() {
  const bias::Softcap<V> cap(kCap);
  const std::vector<V> before = scores<V>();
  const auto n = static_cast<index>(before.size());
  const Sequence sequence{.queries = 1, .keys = n};
  const TileSite site{sequence, 0, 0, 1, 0, n};
  std::vector<V> after = before, slope(before.size(), V{1});
  cap.apply(site, {}, {after.data(), n, TileLanes::kKeys});
  std::vector<V> read = before;
  cap.pull(site, {}, {read.data(), n, TileLanes::kKeys}, {slope.data(), n, TileLanes::kKeys}, {});
  const double ulp = std::numeric_limits<V>::epsilon();
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double x = static_cast<double>(before[i]) / kCap, t = std::tanh(x);
    EXPECT_NEAR(static_cast<double>(after[i]), kCap * t, 4 * ulp * std::abs(kCap * t)) << before[i];
    const double cosh = std::cosh(x);
    EXPECT_NEAR(static_cast<double>(slope[i]), 1 / (cosh * cosh), 4 * ulp) << before[i];
  }
}

TEST(Softcap, IsExactOverAllMagnitudes) {
  for_each_isa([] {
    expect_exact<float>();
    expect_exact<double>();
  });
}

TEST(Softcap, InfinityIsTheCapAndNaNIsPassedOn) {
  for_each_isa([] {
    const float infinity = std::numeric_limits<float>::infinity();
    const Sequence sequence{.queries = 1, .keys = 4};
    const TileSite site{sequence, 0, 0, 1, 0, 4};
    std::vector<float> read = {infinity, -infinity, NAN, NAN}, tile = read;
    const bias::Softcap<float> cap(kCap);
    cap.apply(site, {}, {tile.data(), 4, TileLanes::kKeys});
    EXPECT_EQ(tile[0], 30);
    EXPECT_EQ(tile[1], -30);
    EXPECT_TRUE(std::isnan(tile[2]));
    std::vector<float> gradient = {1, 1, 1, 0};
    cap.pull(site, {}, {read.data(), 4, TileLanes::kKeys}, {gradient.data(), 4, TileLanes::kKeys},
             {});
    EXPECT_EQ(gradient[0], 0);
    EXPECT_EQ(gradient[1], 0);
    EXPECT_TRUE(std::isnan(gradient[2]));
    EXPECT_EQ(gradient[3], 0) << "what the mask drops stays 0";
  });
}

// G = 1, two keys with scores 3 and -1 under a cap of 2: weights of softmax(2 tanh(1.5), 2
// tanh(-0.5)), by hand.
TEST(Softcap, IsAppliedAfterTheScale) {
  Call<double> call({.T = 1, .S = 2, .D = 1, .Dv = 1});
  call.q = {1};
  call.k = {6, -2};
  call.v = {1, 0};
  call.forward({.score = score::Dot{0.5}, .bias = bias::Softcap<double>(2)});
  const double difference = 2 * (std::tanh(1.5) + std::tanh(0.5));
  EXPECT_NEAR(call.o[0], 1 / (1 + std::exp(-difference)), 1e-15);
}

TEST(Softcap, NamesWhatDoesNotFit) {
  const char* words = "softcap: the cap must be above 0 and finite; it is ";
  for (const double cap : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THROWS(bias::Softcap<double>{cap}, kOptionValue, words);
  }
  EXPECT_THROWS(bias::Softcap<float>{1e300}, kOptionValue, words);
  EXPECT_THROWS(bias::Softcap<float>{1e-300}, kOptionValue, words);
  EXPECT_EQ(bias::Softcap<float>(30).name(), "softcap(30)");
}

}  // namespace
}  // namespace fovea::testing
