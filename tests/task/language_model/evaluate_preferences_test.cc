// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/evaluate_preferences.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "fovea/task/language_model/preference.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::vector<double> kLosses = {3, 4.5, 20, 1, 7, 7, 2, 2.25},
                          kReference = {3.5, 4, 1, 20, 7, 7, 2, 2};

TEST(PreferenceScores, AreThoseOfTheEquation) {
  const double beta = 0.4;
  const PreferenceScore score = score_preferences(Context(1), kLosses, kReference, beta);
  double accuracy = 0, margin = 0, loss = 0, chosen = 0, rejected = 0;
  for (std::size_t n = 0; n < kLosses.size(); n += 2) {
    const double first = beta * (-kLosses[n] + kReference[n]),
                 second = beta * (-kLosses[n + 1] + kReference[n + 1]);
    accuracy += first > second ? 0.25 : 0;
    margin += (first - second) / 4;
    loss -= std::log(1 / (1 + std::exp(second - first))) / 4;
    chosen += first / 4;
    rejected += second / 4;
  }
  EXPECT_EQ(score.pairs, 4);
  EXPECT_EQ(score.beta, beta);
  EXPECT_EQ(score.accuracy.value, accuracy);
  EXPECT_EQ(accuracy, 0.5);  // two margins are above 0; one is 0, which is no preference
  EXPECT_NEAR(score.margin.value, margin, 1e-12);
  EXPECT_NEAR(score.loss.value, loss, 1e-12);
  EXPECT_NEAR(score.chosen_reward.value, chosen, 1e-12);
  EXPECT_NEAR(score.rejected_reward.value, rejected, 1e-12);
  const std::vector<double> ratios = log_ratios(kReference);
  const PreferenceStep step = preference_step(kLosses, ratios, beta);  // of the training
  EXPECT_NEAR(score.loss.value, step.loss / 4, 1e-12);
  EXPECT_EQ(score.accuracy.value, static_cast<double>(step.preferred) / 4);
}

TEST(PreferenceScores, HaveIntervalsThatDependOnTheSeedAlone) {
  const PreferenceScore one = score_preferences(Context(1), kLosses, kReference, 0.1),
                        three = score_preferences(Context(3), kLosses, kReference, 0.1),
                        other = score_preferences(Context(1), kLosses, kReference, 0.1,
                                                  {.resamples = 50, .seed = 7});
  std::vector<double> ends[3];
  std::size_t which = 0;
  for (const PreferenceScore* const score : {&one, &three, &other}) {
    score->visit_numbers([&](std::string_view name, const Interval& interval) {
      EXPECT_LE(interval.low, interval.value) << name;
      EXPECT_LE(interval.value, interval.high) << name;
      ends[which].push_back(interval.low);
      ends[which].push_back(interval.high);
    });
    ++which;
  }
  EXPECT_EQ(ends[0], ends[1]);
  EXPECT_NE(ends[0], ends[2]);
  EXPECT_LT(one.margin.low, one.margin.high);
}

TEST(PreferenceScores, AreOfFiniteNumbers) {
  std::vector<double> losses = kLosses;
  losses[3] = std::numeric_limits<double>::infinity();
  EXPECT_THROWS(score_preferences(Context(1), losses, kReference, 0.1), kModelDamaged,
                "the reward of an answer of pair 2 is not finite");
  EXPECT_THROWS(score_preferences(Context(1), {}, {}, 0.1), kShape, "preferences: 0 losses");
}

TEST(PreferenceScores, AsJson) {
  PreferenceScore score = score_preferences(Context(1), kLosses, kReference, 0.1);
  score.reference = "base";
  const Json json = json_of(score);
  EXPECT_EQ(json.at("task").text(), "preferences");
  EXPECT_EQ(json.at("reference").text(), "base");
  for (const char* const name :
       {"accuracy", "margin", "loss", "chosen_reward", "rejected_reward"}) {
    EXPECT_LE(json.at(name).at("low").number(), json.at(name).at("high").number()) << name;
  }
}

}  // namespace
}  // namespace fovea
