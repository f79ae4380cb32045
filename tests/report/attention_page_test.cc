// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/attention_page.h"

#include <gmock/gmock.h>

#include <limits>

#include "tests/report/xml.h"
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

// The page of a model without attention has no map, and nothing that a script would fill.
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

AttentionPage with_evidence() {
  AttentionPage page{.title = "small"};
  page.facts = {{"Model", "<tiny>"}};
  page.texts = {{"text", {"<a>", "b"}}};
  page.maps = {{.name = "layer 1", .heads = 2, .weights = {1, 0, .5F, .5F, 1, 0, .25F, .75F}}};
  page.saliency = {{"gradient", "Someone 2016", 0, {.5F, -.25F}}};
  page.prediction = {{"good", .75}, {" ", .25}};
  page.tiles = {"#.", "/#"};
  page.notes = {"rows 1 & 2"};
  return page;
}

TEST(AttentionBody, SaysWhatIsKnownWithoutScripts) {
  const std::string body = attention_body(with_evidence(), {}, {});
  EXPECT_EQ(xml_error("<main>" + body + "</main>"), "");
  for (const char* part :
       {"<dt>Model</dt><dd><bdi>&lt;tiny&gt;</bdi></dd>", "are no explanation by themselves",
        "rows 1 &amp; 2", "<bdi>good</bdi></th><td>0.7500</td>", "<bdi>\u2423</bdi></th>",
        "Source: Someone 2016",
        "class=\"token below\" style=\"--share:0.500\"><bdi>b</bdi><small>-0.250</small>",
        "<td style=\"--share:1.000\">0.750</td>", "Entropy, in nats", "class=\"part\"",
        "given to 4 decimals", "add up to 1", "1902.10186"}) {
    EXPECT_THAT(body, HasSubstr(part));
  }
}

TEST(AttentionBody, HasALabelBesideEachToken) {
  AttentionPage page = with_evidence();
  EXPECT_THAT(attention_body(page, {}, {}), Not(HasSubstr("What the model says of each token")));
  page.labels = {{"column <2>", 0, {"B-<x>", " "}, {.5, 2}}, {"", 0, {"O", "O"}, {0, 1}}};
  const std::string body = attention_body(page, {}, {});
  EXPECT_EQ(xml_error("<main>" + body + "</main>"), "");
  for (const char* part :
       {"What the model says of each token", "<h3>column &lt;2&gt;</h3>",
        "--share:0.500\"><bdi>&lt;a&gt;</bdi><small><bdi>B-&lt;x&gt;</bdi> 0.5000</small>",
        "--share:1.000\"><bdi>b</bdi><small><bdi>\u2423</bdi> 2.0000</small>",
        "--share:0.000\"><bdi>&lt;a&gt;</bdi><small><bdi>O</bdi> 0.0000</small>"}) {
    EXPECT_THAT(body, HasSubstr(part));
  }
  page.labels = {{.name = "translation", .text = 0, .probabilities = {.5, .25}}};
  EXPECT_THAT(attention_body(page, {}, {}),
              HasSubstr("--share:0.500\"><bdi>&lt;a&gt;</bdi><small>0.5000</small>"));
}

TEST(AttentionBody, LeavesOutWhatThereIsNot) {
  AttentionPage page = with_evidence();
  page.saliency.clear(), page.prediction.clear(), page.tiles.clear();
  page.has_entropies = page.rows_sum_to_one = false;
  const std::string body = attention_body(page, {.decimals = -1}, {});
  EXPECT_EQ(xml_error("<main>" + body + "</main>"), "");
  for (const char* part : {"Saliency", "What the model says", "svg", "Entropy", "add up to 1"}) {
    EXPECT_THAT(body, Not(HasSubstr(part)));
  }
  EXPECT_THAT(body, HasSubstr("a multiple of 10"));
}

// A long label, and many, leave room for the map.
TEST(AttentionBody, CutsPredictions) {
  AttentionPage page = with_evidence();
  page.prediction.assign(13, {std::string(10'000, 'x'), .1});
  const std::string body = attention_body(page, {}, {});
  EXPECT_THAT(body, HasSubstr("<bdi>" + std::string(37, 'x') + "...</bdi>"));
  EXPECT_THAT(body, Not(HasSubstr(std::string(38, 'x'))));
  EXPECT_THAT(body, HasSubstr("and 3 more"));
  page.prediction.resize(10);
  EXPECT_THAT(attention_body(page, {}, {}), Not(HasSubstr(" more</p>")));
}

TEST(AttentionBody, SaysWhatWasCut) {
  EXPECT_THAT(attention_body(with_evidence(), {.strongest = 17}, {}),
              HasSubstr("To stay below 8 MB, this page keeps only the 17 largest weights"));
}

TEST(AttentionBody, SpeaksChinese) {
  AttentionPage page = with_evidence();
  page.language = PageLanguage::kChinese;
  const std::string body = attention_body(page, {.strongest = 17}, {});
  EXPECT_THAT(body, HasSubstr("注意力权重本身不是解释"));
  EXPECT_THAT(body, HasSubstr("不超过 8 MB，本页每行只保存最大的 17 个权重"));
  EXPECT_THAT(body, Not(HasSubstr("Attention")));
}

}  // namespace
}  // namespace fovea
