// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/svg.h"

#include <gmock/gmock.h>

#include <string_view>

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

}  // namespace
}  // namespace fovea
