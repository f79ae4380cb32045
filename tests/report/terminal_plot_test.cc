// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal_plot.h"

#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "fovea/report/terminal.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Losses that fall, with the best validation at update 60 of 80.
RunReport falling() {
  RunReport run{.name = "model", .unit = {"nats per token", "nat/词元"}};
  for (int update = 5; update <= 80; update += 5) {
    run.losses.running_mean.push_back({double(update), 1 + 2 / (1 + update / 10.0)});
  }
  run.losses.validation = {{20, 1.75}, {40, 1.5}, {60, 1.375}, {80, 1.4375}};
  run.losses.interval_mean = {{20, 1.8}, {40, 1.5}, {60, 1.4}, {80, 1.3}};
  run.losses.best = 60;
  return run;
}

TEST(TerminalPlot, InAscii) {
  EXPECT_EQ(terminal_losses(falling(), {.columns = 60}), R"(model: loss, nats per token
    |        .
    |         .
    |          .
1.8 +          .
    |           .. o
    |             .
1.6 +
    |                 ..
    |                   ..      o
    |                     ....                             o
1.4 +                         ...
    |                              ......     @
    |                                    .....
    |                                            ...........
1.2 +
    ++-------------+------------+-------------+------------+
     0            20           40            60           80
                                                     updates
.. training, running mean of the interval so far
 o validation, whole set
 @ best weights: 1.3750 at update 60
 ^ cut off at the top: up to 2.333
)");
}

// The numbers of articles: the loss of the last batch, and the mean of the last 16.
TEST(TerminalPlot, EndsWithTheLastLosses) {
  RunReport run = falling();
  run.losses.last_batch = {{79, 1.5}, {80, 1.25}};
  run.losses.last16_mean = {{79, 1.4}, {80, 1.3}};
  EXPECT_TRUE(terminal_losses(run, {}).ends_with(
      "\nupdate 80: its batch 1.2500, mean of the last 16 1.3000\n"));
  run.losses.last_batch = run.losses.last16_mean = {{3, 2}};
  EXPECT_THAT(terminal_losses(run, {}),
              HasSubstr("update 3: its batch 2.0000, mean of the last 3"));
}

TEST(TerminalPlot, InBraille) {
  EXPECT_EQ(terminal_losses(falling(), {.columns = 60, .unicode = true}),
            R"(model: loss, nats per token
    │       ⠘⡄
    │        ⠘⡄
    │         ⠸⡀
1.8 ┤          ⠑⡄
    │           ⠈⢆o
    │             ⠣
1.6 ┤
    │                 ⠤⡀
    │                  ⠈⠢⢄      o
    │                     ⠉⠒⢄⡀
1.4 ┤                        ⠈⠑⠢⠄                          o
    │                              ⠐⠤⢄⡀       @
    │                                 ⠈⠉⠑⠒⠤⠤⢄⣀
    │                                            ⠐⠒⠢⠤⢄⣀⣀⣀
1.2 ┤                                                    ⠉⠉⠁
    └┬─────────────┬────────────┬─────────────┬────────────┬
     0            20           40            60           80
                                                     updates
⠤⠤ training, running mean of the interval so far
 o validation, whole set
 @ best weights: 1.3750 at update 60
 ^ cut off at the top: up to 2.333
)");
}

TEST(TerminalPlot, InChineseWhereItCanBeShown) {
  const TerminalPlotOptions chinese{
      .columns = 60, .unicode = true, .language = PageLanguage::kChinese};
  const std::string text = terminal_losses(falling(), chinese);
  EXPECT_THAT(text, HasSubstr("最佳权重：1.3750，第 60 次更新"));
  EXPECT_THAT(text, HasSubstr("nat/词元"));
  EXPECT_EQ(terminal_losses(falling(), {.columns = 60, .language = PageLanguage::kChinese}),
            terminal_losses(falling(), {.columns = 60}));
}

TEST(TerminalPlot, FitsAnyTerminalAndAnyLosses) {
  RunReport run = falling();
  run.losses.running_mean[3].y = NAN;
  run.losses.running_mean[4].y = INFINITY;
  for (const index columns : {1, 40, 57, 200}) {
    for (const bool unicode : {false, true}) {
      const std::string text = terminal_losses(run, {.columns = columns, .unicode = unicode});
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        EXPECT_LE(display_width(text.substr(begin, end - begin)), std::max<index>(columns, 60));
        begin = end + 1;
      }
    }
  }
  run.losses = {.validation = {{7, 2.5}}, .best = 7};  // one point alone
  EXPECT_THAT(terminal_losses(run, {}), HasSubstr("@ best weights: 2.5000 at update 7"));
  run.losses = {};
  EXPECT_EQ(terminal_losses(run, {}), "model: loss, nats per token\nnothing measured yet\n");
}

TEST(TerminalPlot, SaysWhatIsCutOff) {
  RunReport run = falling();
  run.losses.running_mean[0].y = 50;
  EXPECT_THAT(terminal_losses(run, {}), HasSubstr("^ cut off at the top: up to 50"));
}

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
