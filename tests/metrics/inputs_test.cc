// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/inputs.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/throws.h"

namespace fovea::detail {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(MetricInputs, LengthsAgreeAndAreNotZero) {
  check_lengths("f1", 3, 3);
  EXPECT_THROWS(check_lengths("f1", 3, 4), kShape,
                "f1: there are 3 true values, and 4 predicted ones");
  EXPECT_THROWS(check_lengths("f1", 0, 0), kShape, "f1: there are no examples");
}

TEST(MetricInputs, LabelsAreInRange) {
  const std::vector<std::int32_t> good = {0, 2, 1}, high = {0, 3}, low = {-1};
  check_labels("f1", "true", good, 3);
  EXPECT_THROWS(check_labels("f1", "true", high, 3), kShape,
                "f1: the true label of example 1 is 3; the labels of 3 classes are 0 to 2");
  EXPECT_THROWS(check_labels("f1", "true", low, 3), kShape, "of example 0 is -1");
  EXPECT_THROWS(check_labels("f1", "true", low, 0), kShape, "classes must be at least 1; it is 0");
}

TEST(MetricInputs, FlagsAreZeroOrOne) {
  const std::vector<std::uint8_t> good = {0, 1}, bad = {1, 0, 2};
  check_flags("auc", "the true label of example", good);
  EXPECT_THROWS(check_flags("auc", "the true label of example", bad), kOptionValue,
                "auc: the true label of example 2 is 2; it must be 0 or 1");
}

TEST(MetricInputs, ValuesAreFinite) {
  const std::vector<float> good = {1.5f, -2};
  EXPECT_EQ(finite_values<float>("mse", good), (std::vector<double>{1.5, -2}));
  for (const double x : {kNan, 1 / 0.0, -1 / 0.0}) {
    const std::vector<double> bad = {0, x};
    EXPECT_THROWS(finite_values<double>("mse", bad), kOptionValue,
                  "mse: the value of example 1 is");
  }
}

TEST(MetricInputs, ProbabilitiesAreInTheirInterval) {
  const std::vector<float> good = {0, 0.25f, 1};
  EXPECT_EQ(probabilities_of<float>("ece", good), (std::vector<double>{0, 0.25, 1}));
  for (const double p : {-1e-9, 1.1, kNan}) {
    const std::vector<double> bad = {0.5, p};
    EXPECT_THROWS(probabilities_of<double>("ece", bad), kOptionValue,
                  "ece: the probability of example 1 is");
  }
}

TEST(MetricInputs, DistributionsAddUpToOne) {
  const std::vector<float> thirds(6, 1.0f / 3);
  EXPECT_EQ(distributions_of<float>("ece", {thirds.data(), 2, 3}).size(), 6);
  EXPECT_EQ(distributions_of<float>("ece", {thirds.data() + 1, 1, 3}).size(), 3);
  const std::vector<double> bad = {0.5, 0.5, 0.5, 0.6}, outside = {1, 0, 2, -1};
  EXPECT_THROWS(distributions_of<double>("ece", {bad.data(), 2, 2}), kOptionValue,
                "ece: the probabilities of example 1 add up to 1.1; they must add up to 1");
  EXPECT_THROWS(distributions_of<double>("ece", {outside.data(), 2, 2}), kOptionValue,
                "ece: the probability of class 0 of example 1 is 2; it must be in [0, 1]");
}

}  // namespace
}  // namespace fovea::detail
