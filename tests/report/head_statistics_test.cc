// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/report/attention_data.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

AttentionPage two_heads() {
  AttentionPage page{.title = "two heads"};
  page.texts = {{"text", {"a", "b", "c"}}};
  page.maps = {{.name = "layer 1", .heads = 2}};
  page.maps[0].weights = {1, 0, 0, .5F,  .5F,  0, 0,   0,    0,  //
                          1, 0, 0, .25F, .75F, 0, .5F, .25F, .25F};
  return page;
}

TEST(HeadStatistics, AreMeansOfTheQueriesThatKeepAKey) {
  const AttentionPage page = two_heads();
  const HeadMeans means = head_means(page, page.maps[0]);
  const double quarter = -.25 * std::log(.25), half = -.5 * std::log(.5),
               three = -.75 * std::log(.75);
  EXPECT_THAT(means.entropy,
              ElementsAre(FloatNear(static_cast<float>(2 * half / 2), 1e-6F),
                          FloatNear(static_cast<float>((3 * quarter + three + half) / 3), 1e-6F)));
  EXPECT_THAT(means.distance,
              ElementsAre(FloatNear(.25F, 1e-6F), FloatNear((.25F + 1 + .25F) / 3, 1e-6F)));
  EXPECT_THAT(means.largest, ElementsAre(.5F, .75F));
}

TEST(HeadStatistics, CountTheDistanceFromThePositionsOfRows) {
  AttentionPage page = two_heads();
  page.texts.push_back({"rows", {"7"}, {7}});
  page.maps = {{.name = "layer 1", .heads = 1, .query_text = 1, .weights = {.5F, 0, .5F}}};
  EXPECT_FLOAT_EQ(head_means(page, page.maps[0]).distance[0], 6);
}

TEST(HeadStatistics, TakeWhatIsGiven) {
  AttentionPage page = two_heads();
  page.maps[0].entropy = {3, 4};
  const HeadMeans means = head_means(page, page.maps[0]);
  EXPECT_THAT(means.entropy, ElementsAre(3, 4));
  EXPECT_FLOAT_EQ(means.distance[0], .25F);
}

TEST(HeadStatistics, TheStrongestCellIsThatOfAQueryWithAChoice) {
  const auto strongest = [](const std::vector<float>& weights, index queries) {
    return strongest_cell({weights, queries, static_cast<index>(weights.size()) / queries});
  };
  EXPECT_EQ(strongest({1, 0, 0, .25F, .75F, 0, .5F, .25F, .25F}, 3), 4);
  EXPECT_EQ(strongest({.5F, .5F, .5F, .5F}, 2), 0);        // of equal ones the first
  EXPECT_EQ(strongest({1, 0, 0, .125F, -.25F, 0}, 2), 4);  // farthest from 0; none is masked
  EXPECT_EQ(strongest({0, 0, 0, .5F}, 2), 3);              // no query has a choice
  EXPECT_EQ(strongest({0, 0}, 1), 0);
}

TEST(HeadStatistics, TheLargestMayBeNegative) {
  AttentionPage page = two_heads();
  page.maps[0].weights[3] = -3;
  EXPECT_FLOAT_EQ(head_means(page, page.maps[0]).largest[0], -3);
}

}  // namespace
}  // namespace fovea
