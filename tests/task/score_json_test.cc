// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/score_json.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(ScoreJson, IntervalsAndScores) {
  Json::Object object;
  add_scores(object, {.precision = {.25, .125, .5}, .recall = {1, 1, 1}, .f1 = {0, 0, .75}});
  const Json json(std::move(object));
  EXPECT_EQ(json.at("precision").at("value").number(), .25);
  EXPECT_EQ(json.at("precision").at("low").number(), .125);
  EXPECT_EQ(json.at("precision").at("high").number(), .5);
  EXPECT_EQ(json.at("recall").at("value").number(), 1);
  EXPECT_EQ(json.at("f1").at("high").number(), .75);
}

TEST(ScoreJson, AMatrixHasARowForEachTrueClass) {
  const Json json = json_of_matrix({.classes = 2, .counts = {3, 1, 0, 2}});
  EXPECT_EQ(json.array()[0].array()[1].whole(), 1);
  EXPECT_EQ(json.array()[1].array()[0].whole(), 0);
  EXPECT_EQ(json_of_texts({"a", "b"}).array()[1].text(), "b");
}

}  // namespace
}  // namespace fovea
