// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fovea/task/classify/run.h"

namespace fovea {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

SearchTrial trial(index rung, double loss, double macro_f1, double error = 0) {
  return {.rung = rung, .loss = loss, .error = error, .metrics = {{"macro_f1", macro_f1}}};
}

TEST(Search, ComparesByWhatSuitsTheClasses) {
  using enum ClassifierMetric;
  EXPECT_EQ(compared_by(kAuto, ClassifierTask::kSingleLabel, true), "macro_f1");
  EXPECT_EQ(compared_by(kAuto, ClassifierTask::kBinary, true), "macro_f1");
  EXPECT_EQ(compared_by(kAuto, ClassifierTask::kBinary, false), "loss");
  EXPECT_EQ(compared_by(kAuto, ClassifierTask::kMultiLabel, true), "loss");
  EXPECT_EQ(compared_by(kAuto, ClassifierTask::kRegression, false), "loss");
  EXPECT_EQ(compared_by(kLoss, ClassifierTask::kBinary, true), "loss");
  EXPECT_EQ(compared_by(kAccuracy, ClassifierTask::kBinary, true), "accuracy");
  EXPECT_EQ(compared_by(kRmse, ClassifierTask::kRegression, false), "rmse");
}

TEST(Search, TakesTheLowestLossOrTheHighestMetric) {
  const std::vector<SearchTrial> trials = {trial(1, 0.5, 0.4), trial(1, 0.3, 0.3),
                                           trial(1, 0.4, 0.6), trial(1, kNone, 0.9)};
  EXPECT_EQ(best_trial(trials, "loss"), 1U);
  EXPECT_EQ(best_trial(trials, "macro_f1"), 2U);
  EXPECT_EQ(best_trial({}, "loss"), 0U);
  const std::vector<SearchTrial> failed = {trial(1, kNone, 0), trial(1, kNone, 1)};
  EXPECT_EQ(best_trial(failed, "loss"), 2U);
}

// The defaults stay where nothing is better than they are by more than chance.
TEST(Search, KeepsTheDefaultsWithinHalfOfTheirInterval) {
  EXPECT_EQ(best_trial(std::vector{trial(1, 0.5, 0.50, 0.03), trial(1, 0.4, 0.52)}, "macro_f1"),
            0U);
  EXPECT_EQ(best_trial(std::vector{trial(1, 0.5, 0.50, 0.03), trial(1, 0.6, 0.54)}, "macro_f1"),
            1U);
  EXPECT_EQ(best_trial(std::vector{trial(1, 0.5, 0.5), trial(1, 0.5, 0.5)}, "loss"), 0U);
}

// What is good on a part of the texts does not count beside what was measured on all.
TEST(Search, TakesTheHighestRung) {
  const std::vector<SearchTrial> trials = {trial(2, 0.5, 0.5, 0.01), trial(1, 0.1, 0.9),
                                           trial(2, 0.6, 0.4)};
  EXPECT_EQ(best_trial(trials, "loss"), 0U);
  EXPECT_EQ(best_trial(trials, "macro_f1"), 0U);
  const std::string table = trial_table(trials, "macro_f1", 2);
  EXPECT_NE(table.find("0.5000"), std::string::npos) << table;
  EXPECT_EQ(table.find("0.1000"), std::string::npos) << table;
}

TEST(Search, GoodnessOfAFailedTrialIsNone) {
  EXPECT_TRUE(std::isnan(goodness_of(trial(1, kNone, 0.9), "macro_f1")));
  EXPECT_TRUE(std::isnan(goodness_of(trial(1, 0.2, 0.9), "accuracy")));
  EXPECT_EQ(goodness_of(trial(1, 0.2, 0.9), "loss"), -0.2);
}

}  // namespace
}  // namespace fovea
