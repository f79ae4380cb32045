// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/article_demo.h"

#include <gmock/gmock.h>

#include <numeric>

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double sum_of(const std::vector<float>& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0.0);
}

TEST(ArticleDemo, MultiHeadHasTheShapeOfS1) {
  const MultiHeadDemo demo = multi_head_demo(Context(2));
  EXPECT_THAT(demo.shape, ElementsAre(6, 3, 8));
  EXPECT_EQ(demo.output.size(), 6U * 3 * 8);
  ASSERT_EQ(demo.weights.size(), 2U * 3 * 3);
  for (std::size_t row = 0; row < 6; ++row) EXPECT_NEAR(sum_of(demo.weights, 3 * row, 3), 1, 1e-6);
  EXPECT_EQ(demo.weights[0], 1);  // token 1 sees itself alone
  EXPECT_EQ(demo.weights[5], 0);  // token 2 does not see token 3
  EXPECT_EQ(multi_head_demo(Context(1)).output, demo.output);
  EXPECT_THAT(demo_text(demo), HasSubstr("\n[6, 3, 8]\n"));
}

TEST(ArticleDemo, PaddingHasTheShapeOfS3AndNoEffect) {
  const PaddingDemo demo = padding_demo(Context(2));
  EXPECT_THAT(demo.shape, ElementsAre(2, 5, 64));
  EXPECT_TRUE(demo.padding_has_no_effect);
  for (std::size_t row = 0; row < 10; ++row) {
    const std::size_t valid = row < 5 ? 3 : 4;
    EXPECT_NEAR(sum_of(demo.weights, 5 * row, valid), 1, 1e-6);
    EXPECT_EQ(sum_of(demo.weights, 5 * row + valid, 5 - valid), 0);
  }
  EXPECT_EQ(padding_demo(Context(1)).output, demo.output);
  const std::string text = demo_text(demo);
  EXPECT_THAT(text, HasSubstr("1 1 1 0 0"));
  EXPECT_THAT(text, HasSubstr("the same bits"));
  EXPECT_THAT(text, HasSubstr("\n[2, 5, 64]\n"));
}

}  // namespace
}  // namespace fovea
