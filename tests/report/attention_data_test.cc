// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_data.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/base/random.h"

namespace fovea {
namespace {

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

}  // namespace
}  // namespace fovea
