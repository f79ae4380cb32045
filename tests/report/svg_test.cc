// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/svg.h"

#include <gmock/gmock.h>

#include <string>
#include <string_view>

#include "tests/report/xml.h"

namespace fovea {
namespace {

TEST(SvgText, HoldsOnlyXmlCharacters) {
  EXPECT_EQ(xml_text("a<b>&\"c\""), "a&lt;b&gt;&amp;&quot;c&quot;");
  EXPECT_EQ(xml_text(std::string_view("\0\x1B\xFF\uFFFE", 6)), "\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(xml_text("床😀"), "床😀");
}

TEST(Coordinate, IsShort) {
  EXPECT_EQ(coordinate(1), "1");
  EXPECT_EQ(coordinate(1.25), "1.3");
  EXPECT_EQ(coordinate(-0.01), "0");
  EXPECT_EQ(coordinate(776.04), "776");
}

TEST(SvgElements, AreShortAndEscaped) {
  EXPECT_EQ(svg_text({1, 2.55, "a<b", "title", Anchor::kEnd}),
            "<text x=\"1\" y=\"2.6\" class=\"title\" text-anchor=\"end\">a&lt;b</text>\n");
  EXPECT_EQ(svg_line({0, 1, 2, 3, "grid"}),
            "<line x1=\"0\" y1=\"1\" x2=\"2\" y2=\"3\" class=\"grid\"/>\n");
}

TEST(TextWidth, OfChineseIsTwice) {
  EXPECT_NEAR(text_width("abcd"), 26.4, 1e-9);
  EXPECT_NEAR(text_width("床前"), 26.4, 1e-9);
}

TEST(SvgPage, HasAStyleForLightAndDark) {
  const SvgPage page{.width = 80,
                     .height = 40,
                     .title = "a<b",
                     .description = "c&d",
                     .rules = ".x{fill:#111}\n",
                     .dark_rules = ".x{fill:#eee}\n"};
  const std::string svg = svg_head(page) + svg_ground(page) + "</svg>\n";
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_TRUE(
      svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 80 40\" "
                      "width=\"80\" height=\"40\" role=\"img\">\n"
                      "<title>a&lt;b</title>\n<desc>c&amp;d</desc>\n<style>\n"));
  EXPECT_LT(svg.find(".x{fill:#111}"), svg.find("@media"));
  EXPECT_GT(svg.find(".x{fill:#eee}"), svg.find("@media"));
  EXPECT_THAT(svg, testing::HasSubstr("<rect class=\"ground\" width=\"80\" height=\"40\"/>"));
}

}  // namespace
}  // namespace fovea
