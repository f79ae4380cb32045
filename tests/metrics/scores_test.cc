// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/scores.h"

#include <gmock/gmock.h>

#include <string>

namespace fovea {
namespace {

TEST(Scores, AreRatiosOfHits) {
  const Scores scores = detail::scores_of({.both = 3, .truth = 4, .predicted = 6});
  EXPECT_EQ(scores.precision, 0.5);
  EXPECT_EQ(scores.recall, 0.75);
  EXPECT_EQ(scores.f1, 0.6);
}

TEST(Scores, ADivisionByZeroGivesZero) {
  for (const detail::Hits& hits : {detail::Hits{}, {.truth = 2}, {.predicted = 2}}) {
    const Scores scores = detail::scores_of(hits);
    EXPECT_EQ(scores.precision, 0);
    EXPECT_EQ(scores.recall, 0);
    EXPECT_EQ(scores.f1, 0);
  }
}

TEST(Scores, MeanIsWeighted) {
  const Scores mean = detail::mean_of({{1, 2, 3}, {5, 6, 7}}, {3, 1});
  EXPECT_EQ(mean.precision, 2);
  EXPECT_EQ(mean.recall, 3);
  EXPECT_EQ(mean.f1, 4);
  EXPECT_EQ(detail::mean_of({{1, 1, 1}}, {0}).f1, 0);
}

TEST(Scores, AreVisitedByNameAndLabel) {
  const std::vector<Scores> classes = {{1, 2, 3}, {4, 5, 6}};
  std::string seen;
  detail::visit_classes(classes, [&](const NumberName& name, double number) {
    seen += std::string(name.name) + std::to_string(name.label) + '=' +
            std::to_string(static_cast<int>(number)) + ' ';
  });
  EXPECT_EQ(seen, "precision0=1 recall0=2 f10=3 precision1=4 recall1=5 f11=6 ");
}

}  // namespace
}  // namespace fovea
