// SPDX-License-Identifier: Apache-2.0
#include "experiments/article_demo.h"

#include <gmock/gmock.h>

#include <numeric>
#include <string>

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

double sum_of(const std::vector<float>& values, std::size_t begin, std::size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0.0);
}

TEST(ArticleDemo, MultiHeadHasTheShapeOfS1) {
  const MultiHeadDemo demo = multi_head_demo(Context(2), 0);
  EXPECT_THAT(demo.shape, ElementsAre(6, 3, 8));
  EXPECT_EQ(demo.output.size(), 6U * 3 * 8);
  ASSERT_EQ(demo.weights.size(), 2U * 3 * 3);
  for (std::size_t row = 0; row < 6; ++row) EXPECT_NEAR(sum_of(demo.weights, 3 * row, 3), 1, 1e-6);
  EXPECT_EQ(demo.weights[0], 1);  // token 1 sees itself alone
  EXPECT_EQ(demo.weights[5], 0);  // token 2 does not see token 3
  EXPECT_EQ(multi_head_demo(Context(1), 0).output, demo.output);
  EXPECT_THAT(demo_text(demo, PageLanguage::kEnglish), HasSubstr("\n[6, 3, 8]\n"));
}

TEST(ArticleDemo, PaddingHasTheShapeOfS3AndNoEffect) {
  const PaddingDemo demo = padding_demo(Context(2), 0);
  EXPECT_THAT(demo.shape, ElementsAre(2, 5, 64));
  EXPECT_TRUE(demo.padding_has_no_effect);
  for (std::size_t row = 0; row < 10; ++row) {
    const std::size_t valid = row < 5 ? 3 : 4;
    EXPECT_NEAR(sum_of(demo.weights, 5 * row, valid), 1, 1e-6);
    EXPECT_EQ(sum_of(demo.weights, 5 * row + valid, 5 - valid), 0);
  }
  EXPECT_EQ(padding_demo(Context(1), 0).output, demo.output);
  const std::string text = demo_text(demo, PageLanguage::kEnglish);
  EXPECT_THAT(text, HasSubstr("1 1 1 0 0"));
  EXPECT_THAT(text, HasSubstr("the same bits"));
  EXPECT_THAT(text, HasSubstr("\n[2, 5, 64]\n"));
}

// PyTorch 2.13 in float64 on its float32 input and weights: torch.manual_seed(0), torch.rand(6, 3,
// 8), torch.nn.Linear(8, 8), four times the same; no dropout.
TEST(ArticleDemo, MultiHeadHasTheNumbersOfPyTorch) {
  const MultiHeadDemo demo = multi_head_demo(Context(2), 0);
  EXPECT_EQ(demo.input.front(), 0.49625659F);
  EXPECT_EQ(demo.input.back(), 0.463839173F);
  const double first[] = {0.178429908,  -0.10930648,  0.210034249, 0.416276071,
                          0.0150872609, -0.109599671, 0.322253363, 0.31481583};
  const double last[] = {0.360752763,  -0.000425303126, 0.338286411, 0.199975626,
                         -0.156742194, -0.31162458,     0.426347425, 0.240951049};
  for (std::size_t c = 0; c < 8; ++c) {
    EXPECT_NEAR(demo.output[c], first[c], 1e-6);
    EXPECT_NEAR(demo.output[17 * 8 + c], last[c], 1e-6);
  }
  const double weights[] = {0.34369703,  0.278990878, 0.377312092,
                            0.344086087, 0.311993961, 0.343919952};
  for (std::size_t w = 0; w < 6; ++w) {
    EXPECT_NEAR(demo.weights[w < 3 ? 6 + w : 12 + w], weights[w], 1e-6);
  }
}

// PyTorch's numbers for S3, with Q, K, V = torch.rand(2, 5, 64) in this order.
TEST(ArticleDemo, PaddingHasTheNumbersOfPyTorch) {
  struct Golden {
    std::uint64_t seed;
    double weights[3], first[4], last[2];
  };
  const Golden goldens[] = {{0,
                             {0.335815487, 0.317727004, 0.346457509},
                             {0.378585216, 0.344306209, 0.697288539, 0.374395363},
                             {0.765812635, 0.623257571}},
                            {42,
                             {0.362786659, 0.3135738, 0.323639541},
                             {0.291919191, 0.374236108, 0.389389516, 0.498668327},
                             {0.701870091, 0.479311753}}};
  for (const Golden& golden : goldens) {
    const PaddingDemo demo = padding_demo(Context(2), golden.seed);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(demo.weights[i], golden.weights[i], 1e-6);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(demo.output[i], golden.first[i], 1e-6);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(demo.output[638 + i], golden.last[i], 1e-6);
    EXPECT_THAT(demo_text(demo, PageLanguage::kEnglish),
                HasSubstr("torch.manual_seed(" + std::to_string(golden.seed) + ")"));
  }
}

TEST(ArticleDemo, AnswersInChinese) {
  const std::string s1 = demo_text(multi_head_demo(Context(1), 7), PageLanguage::kChinese);
  EXPECT_THAT(s1, HasSubstr("带因果掩码的多头注意力，d = 8，n = 3，B = 6，h = 2"));
  EXPECT_THAT(s1, HasSubstr("torch.manual_seed(7)"));
  EXPECT_THAT(s1, HasSubstr("文章      [6, 3, 8]"));
  EXPECT_THAT(demo_text(padding_demo(Context(1), 7), PageLanguage::kChinese),
              HasSubstr("各位完全相同"));
}

}  // namespace
}  // namespace fovea
