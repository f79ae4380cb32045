// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>

#include "fovea/explain/shown.h"
#include "tests/explain/sample_explanation.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Explanation explanation() {
  return {.kind = {"text classifier", "文本分类器"},
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

TEST(SamplePage, HasEveryJointAndTimeStepOfALayer) {
  const Explanation e = sample_explanation();
  const AttentionPage page = page_of(e, "gestures", PageLanguage::kEnglish);
  // Means and two joints, means and three time steps, the pooling.
  ASSERT_THAT(page.maps, SizeIs(3 + 4 + 1));
  EXPECT_EQ(page.maps[0].part, "mean of 2 joints");
  EXPECT_FALSE(page.maps[0].is_of_layer_before);
  EXPECT_THAT(page.maps[0].distance, ElementsAre(1, 2));
  EXPECT_EQ(page.maps[2].part, "joint 1");
  EXPECT_TRUE(page.maps[2].is_of_layer_before);
  EXPECT_EQ(page.maps[2].rows_are, "query time step");
  EXPECT_EQ(page.maps[3].name, "layer 2 (attention:joints)");
  EXPECT_FALSE(page.maps[3].has_distances);
  EXPECT_EQ(page.maps[6].part, "time step 6");
  EXPECT_EQ(page.maps[6].key_text, 1U);
  EXPECT_THAT(page.texts[0].positions, ElementsAre(4, 5, 6));
  // Rows are joints.
  EXPECT_THAT(page.maps[7].weights, ElementsAre(.1F, .1F, .1F, .2F, .2F, .3F));
  EXPECT_NEAR(page.maps[7].entropy.at(0),
              -(.3 * std::log(.1) + .4 * std::log(.2) + .3 * std::log(.3)), 1e-6);
  EXPECT_THAT(page.notes, SizeIs(1));
  ASSERT_THAT(page.saliency, SizeIs(2));
  EXPECT_THAT(page.saliency[0].values, ElementsAre(-.25F, .125F, .5F));
  EXPECT_THAT(page.saliency[1].values, ElementsAre(.25F, .125F));
  ASSERT_THAT(page.tables, SizeIs(1));
  EXPECT_THAT(page.tables[0].values, ElementsAre(.25F, 0, 0, -.5F, .125F, .5F));
  const std::string html = draw_attention_page(page);
  for (const char* part : {"Joint or time step", "classifier of numbers", "Distance, in time steps",
                           "<td class=\"below\" style=\"--share:1.000\">-0.500</td>",
                           "Rows: joint. Columns: time step.", "a time step or joint caused"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("a token caused")));
}

TEST(SamplePage, WithoutJointsPoolingHasOneQuery) {
  Explanation e = sample_explanation();
  e.numbers->joints = 0;
  e.layers.clear();
  e.pooling = {.25F, .5F, .25F};
  e.saliency.values = {1, -2, 0};
  const AttentionPage page = page_of(e, "m", PageLanguage::kChinese);
  ASSERT_THAT(page.maps, SizeIs(1));
  EXPECT_EQ(page.texts[page.maps[0].query_text].tokens, std::vector<std::string>{"*"});
  EXPECT_THAT(page.saliency, SizeIs(1));
  EXPECT_THAT(page.tables, SizeIs(0));
  const std::string html = draw_attention_page(page);
  EXPECT_THAT(html, HasSubstr("数值分类器"));
  EXPECT_THAT(html, Not(HasSubstr("id=\"part\"")));
}

TEST(SamplePage, TooManyNumbersAreShownAsSumsAlone) {
  Explanation e = sample_explanation();
  e.layers.clear();
  e.tokens.assign(201, "1");
  e.numbers = ExplainedSample{0, 0, 100};
  e.pooling.assign(20'100, 1.0F / 20'100);
  e.saliency.values.assign(20'100, 1);
  const AttentionPage page = page_of(e, "m", PageLanguage::kEnglish);
  EXPECT_THAT(page.tables, SizeIs(0));
  EXPECT_THAT(page.saliency, SizeIs(2));
  EXPECT_THAT(page.notes, SizeIs(2));
  EXPECT_FALSE(page.rows_sum_to_one);
}

}  // namespace
}  // namespace fovea
