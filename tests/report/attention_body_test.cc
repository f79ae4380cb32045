// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/report/attention_page.h"
#include "tests/report/xml.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

AttentionPage small() {
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
  const std::string body = attention_body(small(), {}, {});
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
  AttentionPage page = small();
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
  AttentionPage page = small();
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
  AttentionPage page = small();
  page.prediction.assign(13, {std::string(10'000, 'x'), .1});
  const std::string body = attention_body(page, {}, {});
  EXPECT_THAT(body, HasSubstr("<bdi>" + std::string(37, 'x') + "...</bdi>"));
  EXPECT_THAT(body, Not(HasSubstr(std::string(38, 'x'))));
  EXPECT_THAT(body, HasSubstr("and 3 more"));
  page.prediction.resize(10);
  EXPECT_THAT(attention_body(page, {}, {}), Not(HasSubstr(" more</p>")));
}

TEST(AttentionBody, SaysWhatWasCut) {
  EXPECT_THAT(attention_body(small(), {.strongest = 17}, {}),
              HasSubstr("To stay below 8 MB, this page keeps only the 17 largest weights"));
}

TEST(AttentionBody, SpeaksChinese) {
  AttentionPage page = small();
  page.language = PageLanguage::kChinese;
  const std::string body = attention_body(page, {.strongest = 17}, {});
  EXPECT_THAT(body, HasSubstr("注意力权重本身不是解释"));
  EXPECT_THAT(body, HasSubstr("不超过 8 MB，本页每行只保存最大的 17 个权重"));
  EXPECT_THAT(body, Not(HasSubstr("Attention")));
}

}  // namespace
}  // namespace fovea
