// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/isotonic.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "fovea/base/random.h"
#include "fovea/linear/linear_model.h"

namespace fovea {
namespace {

using ::testing::ElementsAre;

// By hand: at -1 none of two, then 1, 0, 1 of one each, of which the first two are out of order.
TEST(Isotonic, PoolsWhatDoesNotAscend) {
  const IsotonicMap map =
      fit_isotonic({{3, true}, {1, true}, {-1, false}, {2, false}, {-1, false}});
  EXPECT_THAT(map.log_odds, ElementsAre(-1, 1, 2, 3));
  // Each pool with one more text, which is as true as the log-odds say.
  const double first = sigmoid(-1) / 3, second = (1 + (sigmoid(1) + sigmoid(2)) / 2) / 3,
               third = (1 + sigmoid(3)) / 2;
  EXPECT_NEAR(map.probabilities[0], first, 1e-6);
  EXPECT_NEAR(map.probabilities[1], second, 1e-6);
  EXPECT_NEAR(map.probabilities[2], second, 1e-6);
  EXPECT_NEAR(map.probabilities[3], third, 1e-6);
  EXPECT_NEAR(map(-5), first, 1e-6);
  EXPECT_NEAR(map(0), (first + second) / 2, 1e-6);
  EXPECT_NEAR(map(1.5), second, 1e-6);
  EXPECT_NEAR(map(9), third, 1e-6);
}

// Whatever the texts, no probability falls, and none is 0 or 1.
TEST(Isotonic, AscendsWithinZeroAndOne) {
  Random random(1, RandomUse::kTest);
  for (const int count : {1, 2, 7, 500}) {
    std::vector<IsotonicText> texts;
    for (int i = 0; i < count; ++i) {
      const double z = std::round(8 * random.normal()) / 4;
      texts.push_back(
          {static_cast<float>(z), random.uniform() < sigmoid(z - 1), random.uniform(0.1, 3)});
    }
    const IsotonicMap map = fit_isotonic(texts);
    EXPECT_TRUE(std::is_sorted(map.probabilities.begin(), map.probabilities.end()));
    for (std::size_t n = 1; n < map.log_odds.size(); ++n) {
      EXPECT_LT(map.log_odds[n - 1], map.log_odds[n]);
    }
    EXPECT_GT(map.probabilities.front(), 0);
    EXPECT_LT(map.probabilities.back(), 1);
  }
  const IsotonicMap sure = fit_isotonic(std::vector<IsotonicText>(100'000, {1000, true}));
  EXPECT_LT(sure.probabilities.front(), 1);
}

TEST(Isotonic, CountsWeights) {
  const IsotonicMap map = fit_isotonic({{0, true, 30}, {0, false, 10}});
  EXPECT_NEAR(map(0), 30.5 / 41, 1e-6);
}

// Of several classes the maps read log-odds of the softmax, however far apart the logits are.
TEST(Isotonic, ReadsTheLogOddsOfASoftmax) {
  std::vector<double> z = {1, 2, -1};
  const double sum = std::exp(1) + std::exp(2) + std::exp(-1);
  to_log_odds(ClassifierTask::kSingleLabel, z);
  for (const auto& [found, logit] : {std::pair{z[0], 1.0}, {z[1], 2.0}, {z[2], -1.0}}) {
    const double p = std::exp(logit) / sum;
    EXPECT_NEAR(found, std::log(p / (1 - p)), 1e-12);
  }
  std::vector<double> far = {500, -500};
  to_log_odds(ClassifierTask::kSingleLabel, far);
  EXPECT_GT(far[0], 600);
  EXPECT_NEAR(far[1], -1000, 1e-9);
  std::vector<double> labels = {0.25, -3};
  to_log_odds(ClassifierTask::kMultiLabel, labels);
  EXPECT_THAT(labels, ElementsAre(0.25, -3));
}

}  // namespace
}  // namespace fovea
