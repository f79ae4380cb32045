// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sstream>

#include "fovea/report/terminal_plot.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TerminalMap small_map() {
  return {.rows = {"ab", "\u4f60"},
          .columns = {"ab", "\u4f60"},
          .values = {0, 1, -.5F, .1F},
          .largest = 1};
}

TEST(TerminalMap, IsBlocksOrLettersWithoutColour) {
  const TerminalMap map = small_map();
  EXPECT_THAT(
      lines_of(draw_terminal_map(map, {.unicode = true})),
      ElementsAre("     a", "     b \u4f60", "1 ab   \u2588\u2588", "2 \u4f60 --\u2591\u2591",
                  "     0 \u00b7\u00b7\u2591\u2591\u2592\u2592\u2593\u2593\u2588\u2588 1 (shaded "
                  "by the square root)"));
  EXPECT_THAT(lines_of(draw_terminal_map(map, {})),
              ElementsAre("     a", "     b \u4f60", "1 ab   @@", "2 \u4f60 --==",
                          "     0 ..::==++**##%%@@ 1 (shaded by the square root)"));
}

TEST(TerminalMap, ColoursGetLighterAndNegativeOnesAreRed) {
  const std::string text = draw_terminal_map(small_map(), {.color = true});
  EXPECT_THAT(text, HasSubstr("1 ab   \x1b[48;5;220m  \x1b[0m\n"));
  EXPECT_THAT(text, HasSubstr("2 \u4f60 \x1b[48;5;160m  \x1b[0m\x1b[48;5;31m  \x1b[0m\n"));
}

TEST(TerminalMap, HasNumbersAndBarsBesideTheRows) {
  TerminalMap map = small_map();
  map.side = {-.25F, .125F};
  map.largest_side = .25;
  map.side_name = "saliency";
  const auto lines = lines_of(draw_terminal_map(map, {}));
  EXPECT_EQ(lines[1], "     b \u4f60  saliency");
  EXPECT_EQ(lines[2], "1 ab   @@    -0.250 #########");
  EXPECT_EQ(lines[3], "2 \u4f60 --==    +0.125 #####");
  map.side_sign = SideSign::kNegative;
  EXPECT_EQ(lines_of(draw_terminal_map(map, {}))[2], "1 ab   @@    -0.250 #########");
  EXPECT_EQ(lines_of(draw_terminal_map(map, {}))[3], "2 \u4f60 --==     0.125 #####");
  map.side_sign = SideSign::kAlways;
  map.values.clear();
  map.columns.clear();
  EXPECT_THAT(
      lines_of(draw_terminal_map(map, {})),
      ElementsAre("       saliency", "1 ab     -0.250 #########", "2 \u4f60     +0.125 #####"));
}

TEST(TerminalMap, CutsNamesAndFitsItsColumns) {
  TerminalMap map{.rows = {"a name that is too long"}, .largest = 1, .first_row = 99};
  for (index c = 0; c < most_map_columns(80, 99, true); ++c) {
    map.columns.emplace_back("a name that is too long");
    map.values.push_back(1);
  }
  map.side = {1};
  map.largest_side = 1;
  const auto lines = lines_of(draw_terminal_map(map, {}));
  ASSERT_EQ(lines.size(), 9U);
  for (const std::string& line : lines) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_THAT(lines[7], HasSubstr("99 a name th... @@"));
  EXPECT_EQ(most_map_columns(10, 5, true), 1);
}

TEST(TerminalMap, RefusesWhatDoesNotFit) {
  TerminalMap map = small_map();
  map.values.pop_back();
  EXPECT_THROWS(draw_terminal_map(map, {}), kShape, "3 values for 2 rows and 2 columns");
  map = small_map();
  map.side = {1};
  EXPECT_THROWS(draw_terminal_map(map, {}), kShape, "1 numbers beside 2 rows");
}

}  // namespace
}  // namespace fovea
