// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_page.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

AttentionPage small() {
  AttentionPage page{.title = "small"};
  page.texts = {{"text", {"a", "</script>"}}};
  page.maps = {{.name = "layer 1", .heads = 1, .weights = {1, 0, .5F, .5F}}};
  return page;
}

TEST(AttentionPage, IsTheSameFileEachTime) {
  const std::string html = draw_attention_page(small());
  EXPECT_EQ(html, draw_attention_page(small()));
  EXPECT_THAT(html, HasSubstr("\"tokens\":[\"a\",\"\\u003c/script\\u003e\"]"));
  EXPECT_THAT(html, HasSubstr("\"decimals\":6,\"negative\":false,\"strongest\":0"));
  EXPECT_THAT(html, HasSubstr("id=\"map-0\">{\"masks\":[0],"));
  EXPECT_THAT(html, HasSubstr("\"head\":\"Head {0}\""));
  EXPECT_LT(html.size(), 60'000);
}

TEST(AttentionPage, StaysBelowItsLimits) {
  AttentionPage page = small();
  const index length = 64;
  page.texts[0].tokens.assign(length, "word");
  page.maps[0].weights.clear();
  page.maps[0].heads = 2;
  for (index cell = 0; cell < 2 * length * length; ++cell) {
    page.maps[0].weights.push_back(static_cast<float>((cell * 7919) % 100 + 1) / 3200);
  }
  const std::size_t all = draw_attention_page(page).size();
  const std::string cut = draw_attention_page(page, {0, all - 8000});
  EXPECT_LE(cut.size(), all - 8000);
  EXPECT_THAT(cut, HasSubstr("largest weights of each row"));
  EXPECT_THAT(cut, Not(HasSubstr("\"strongest\":0")));
}

// The rows that are not looked at when the digits are chosen are the large ones.
TEST(AttentionPage, StaysBelowItsLimitWhereTheEstimateIsWrong) {
  AttentionPage page = small();
  const index length = 120;  // every fifth row is looked at, beginning with the third
  page.texts[0].tokens.assign(length, "word");
  page.maps[0].weights.clear();
  for (index query = 0; query < length; ++query) {
    for (index key = 0; key < length; ++key) {
      const bool is_one = query % 5 == 2;
      page.maps[0].weights.push_back(is_one ? (key == 0 ? 1 : 0)
                                            : static_cast<float>((key * 37) % 100 + 1) / 6000);
    }
  }
  const std::size_t all = draw_attention_page(page, {0, 8'000'000}).size();
  EXPECT_LE(draw_attention_page(page, {0, all - 2000}).size(), all - 2000);
}

// Of a model without attention: no map, and nothing that a script would fill.
TEST(AttentionPage, HasSaliencyAlone) {
  AttentionPage page = small();
  page.maps.clear();
  page.saliency = {{"gradient", "", 0, {1, -2}}};
  const std::string html = draw_attention_page(page);
  EXPECT_THAT(html, HasSubstr("What each token counts for"));
  EXPECT_THAT(html, HasSubstr("<small>-2.00</small>"));
  EXPECT_THAT(html, Not(HasSubstr("id=\"map\"")));
  EXPECT_THAT(html, Not(HasSubstr("application/json")));
  EXPECT_THAT(html, Not(HasSubstr("ttention weights")));
}

TEST(AttentionPage, RefusesSizesThatDoNotAgree) {
  AttentionPage page = small();
  page.maps[0].weights.pop_back();
  EXPECT_THROWS(draw_attention_page(page), kShape, "layer 1 has 3 numbers; there must be 4");
  page = small();
  page.maps[0].weights[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(draw_attention_page(page), kShape, "layer 1 holds nan; it must be finite");
  page = small();
  page.maps[0].key_text = 1;
  EXPECT_THROWS(draw_attention_page(page), kShape, "layer 1 is about texts 0 and 1; there are 1");
  page = small();
  page.maps.clear();
  EXPECT_THROWS(draw_attention_page(page), kShape, "there is nothing to show");
  page = small();
  page.saliency = {{"gradient", "", 0, {1}}};
  EXPECT_THROWS(draw_attention_page(page), kShape, "gradient has 1 numbers; there must be 2");
  page = small();
  page.texts[0].positions = {0};
  EXPECT_THROWS(draw_attention_page(page), kShape, "text has 1 positions for 2 tokens");
  page = small();
  page.texts[0].tokens.clear();
  EXPECT_THROWS(draw_attention_page(page), kShape, "text has 0 tokens");
  page = small();
  page.maps[0].heads = 0;
  EXPECT_THROWS(draw_attention_page(page), kShape, "layer 1 has 0 heads");
}

}  // namespace
}  // namespace fovea
