// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/page.h"

#include <gmock/gmock.h>

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Explanation explanation() {
  return {.kind = ExplainedKind::kTextClassifier,
          .tokens = {"</script>", "\u4f60"},
          .layers = {{.name = "layer 1 (attention)",
                      .heads = 1,
                      .queries = 2,
                      .keys = 2,
                      .weights = {1, 0, .25F, .75F},
                      .entropy = {.5},
                      .distance = {.25},
                      .largest = {1}}},
          .pooling = {.5F, .5F},
          .prediction = {{"good", .75}},
          .saliency = {.method = SaliencyMethod::kGradientInput,
                       .of = {"the logit of \"good\"", "\"good\" 的 logit"},
                       .values = {1, -1}},
          .notes = {{"A note.", "一条说明。"}}};
}

TEST(ExplanationPage, HasEveryPart) {
  const AttentionPage page = page_of(explanation(), "reviews", PageLanguage::kEnglish);
  ASSERT_THAT(page.maps, SizeIs(2));
  EXPECT_THAT(page.maps[0].weights, ElementsAre(1, 0, .25F, .75F));
  EXPECT_THAT(page.maps[0].entropy, ElementsAre(.5F));
  EXPECT_THAT(page.texts[0].positions, ElementsAre(1, 2));
  EXPECT_EQ(page.maps[1].query_text, 1U);
  EXPECT_THAT(page.texts[1].positions, ElementsAre(1));
  EXPECT_FALSE(page.maps[1].has_distances);
  ASSERT_THAT(page.saliency, SizeIs(1));
  EXPECT_EQ(page.saliency[0].name, "gradient x input: the logit of \"good\"");
  EXPECT_EQ(page.prediction[0].label, "good");
  EXPECT_EQ(page.notes[0], "A note.");
  const std::string html = draw_attention_page(page);
  EXPECT_THAT(html, Not(HasSubstr("\"</script>")));
  EXPECT_THAT(html, HasSubstr("no explanation by themselves"));
}

TEST(ExplanationPage, SaysThatRowsSumToOneOnlyIfTheyDo) {
  EXPECT_THAT(draw_attention_page(page_of(explanation(), "m", PageLanguage::kEnglish)),
              HasSubstr("add up to 1"));
  Explanation sigmoid = explanation();
  sigmoid.layers[0].entropy.clear();
  sigmoid.layers[0].distance.clear();
  const std::string html = draw_attention_page(page_of(sigmoid, "m", PageLanguage::kEnglish));
  EXPECT_THAT(html, Not(HasSubstr("add up to 1")));
  EXPECT_THAT(html, Not(HasSubstr("Entropy")));
}

TEST(ExplanationPage, IsChineseWhenAsked) {
  const AttentionPage page = page_of(explanation(), "reviews", PageLanguage::kChinese);
  EXPECT_EQ(page.title, "模型看了哪里");
  EXPECT_EQ(page.maps[0].name, "层 1 (attention)");
  EXPECT_EQ(page.notes[0], "一条说明。");
  EXPECT_THAT(page.saliency[0].name, HasSubstr("\"good\" 的 logit"));
  Explanation plain = explanation();
  plain.saliency.values.clear();
  plain.pooling.clear();
  EXPECT_THAT(page_of(plain, "m", PageLanguage::kChinese).saliency, SizeIs(0));
}

}  // namespace
}  // namespace fovea
