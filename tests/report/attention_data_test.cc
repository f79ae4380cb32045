// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_data.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

AttentionPage page_of(index layers, index heads, index length, bool causal) {
  Random random(3, RandomUse::kTest);
  AttentionPage page{.title = "page"};
  page.texts = {{"text", std::vector<std::string>(static_cast<std::size_t>(length), "a")}};
  for (index layer = 0; layer < layers; ++layer) {
    AttentionMap map{.name = "layer", .heads = heads};
    for (index line = 0; line < heads * length; ++line) {
      const index kept = causal ? line % length + 1 : length;
      std::vector<float> row(static_cast<std::size_t>(length), 0);
      float sum = 0;
      for (index key = 0; key < kept; ++key) {
        sum += row[static_cast<std::size_t>(key)] =
            static_cast<float>(-std::log(random.uniform() + 1e-9));
      }
      for (const float weight : row) map.weights.push_back(weight / sum);
    }
    page.maps.push_back(map);
  }
  return page;
}

std::size_t bytes_of(const AttentionPage& page, const WeightDigits& digits) {
  std::size_t bytes = 0;
  for (const PageData& data : code_maps(page, digits, code_masks(page))) bytes += data.json.size();
  return bytes;
}

TEST(AttentionData, HasAsManyDecimalsAsFit) {
  const AttentionPage page = page_of(2, 2, 20, false);
  const std::size_t six = bytes_of(page, {.decimals = 6}), five = bytes_of(page, {.decimals = 5});
  const std::size_t four = bytes_of(page, {.decimals = 4});
  EXPECT_EQ(choose_digits(page, {2 * six, 3 * six}).decimals, 6);
  EXPECT_EQ(choose_digits(page, {(five + six) / 2, 3 * six}).decimals, 5);
  EXPECT_EQ(choose_digits(page, {(four + five) / 2, 3 * six}).decimals, 4);
  EXPECT_EQ(choose_digits(page, {(four + five) / 2, 3 * six}).strongest, 0);
  // Beyond `fine` there is room again.
  EXPECT_EQ(choose_digits(page, {four / 2, 3 * six}).decimals, 6);
  EXPECT_EQ(choose_digits(page, {four / 2, (five + six) / 2}).decimals, 5);
  EXPECT_EQ(choose_digits(page, {four / 2, (four + five) / 2}).decimals, 4);
}

TEST(AttentionData, KeepsTheStrongestThatFit) {
  const AttentionPage page = page_of(2, 3, 48, true);
  const std::size_t all = bytes_of(page, {});
  for (const double part : {0.8, 0.4, 0.2}) {
    const auto most = static_cast<std::size_t>(part * static_cast<double>(all));
    const WeightDigits digits = choose_digits(page, {0, most});
    EXPECT_EQ(digits.decimals, 4);
    EXPECT_GT(digits.strongest, 0);
    EXPECT_LE(bytes_of(page, digits), most) << part;
    EXPECT_GT(bytes_of(page, {.strongest = digits.strongest + 2}), .9 * static_cast<double>(most));
  }
}

TEST(AttentionData, KeepsFewerUntilOneIsLeft) {
  const AttentionPage page = page_of(1, 1, 40, false);
  WeightDigits digits;
  EXPECT_TRUE(keep_fewer(page, digits));
  EXPECT_EQ(digits.strongest, 36);
  digits.strongest = 2;
  EXPECT_TRUE(keep_fewer(page, digits));
  EXPECT_EQ(digits.strongest, 1);
  EXPECT_FALSE(keep_fewer(page, digits));
}

TEST(AttentionData, LargeWeightsHaveFewerDecimals) {
  AttentionPage page = page_of(1, 1, 5, false);
  page.maps[0].weights[3] = -1234;
  const WeightDigits digits = choose_digits(page, {});
  EXPECT_EQ(digits.decimals, 2);
  EXPECT_TRUE(digits.negative);
}

TEST(AttentionData, StoresEqualMasksOnce) {
  AttentionPage page = page_of(3, 4, 6, true);
  CodedMasks masks = code_masks(page);
  EXPECT_THAT(masks.of_heads, testing::Each(0));
  EXPECT_EQ(masks.of_heads.size(), 12);
  page.maps[1].weights[1] = .5F;
  masks = code_masks(page);
  EXPECT_EQ(masks.of_heads[4], 1);
  EXPECT_EQ(masks.of_heads[5], 0);
}

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
