// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "fovea/metrics/probabilities.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinite = std::numeric_limits<float>::infinity();

TEST(MostLikelyClasses, AreTheFirstLargest) {
  const std::vector<float> scores = {1, 3, 3, -1, -2, -3, -kInfinite, -kInfinite, 0};
  EXPECT_EQ(most_likely_classes<float>({scores.data(), 3, 3}),
            (std::vector<std::int32_t>{1, 0, 2}));
  EXPECT_EQ(most_likely_classes<float>({scores.data(), 2, 2, 4}),
            (std::vector<std::int32_t>{1, 0}));
}

TEST(MostLikelyClasses, NanIsAnError) {
  const std::vector<float> scores = {1, 3, kNan, 0};
  EXPECT_THROWS(most_likely_classes<float>({scores.data(), 2, 2}), kOptionValue,
                "most_likely_classes: score 0 of example 1 is NaN");
  EXPECT_THROWS(most_likely_classes<float>({scores.data(), 2, 0}), kShape, "for each class");
}

TEST(LabelsAbove, IncludeTheThreshold) {
  const std::vector<double> p = {0.4, 0.5, 0.6, 0.9};
  const Rows<const double> rows(p.data(), 2, 2);
  EXPECT_EQ(labels_above(rows), (std::vector<std::uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(labels_above(rows, 0.7), (std::vector<std::uint8_t>{0, 0, 0, 1}));
  const std::vector<double> bad = {0, static_cast<double>(kNan)};
  EXPECT_THROWS(labels_above<double>({bad.data(), 1, 2}), kOptionValue, "score 1 of example 0");
}

}  // namespace
}  // namespace fovea
