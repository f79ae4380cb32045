// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal_plot.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/report/terminal.h"

namespace fovea {
namespace {

using testing::HasSubstr;

// Losses that fall, with the best validation at update 60 of 80.
RunReport falling() {
  RunReport run{.name = "model", .unit = {"nats per token", "奈特/词元"}};
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
  EXPECT_THAT(text, HasSubstr("奈特/词元"));
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

}  // namespace
}  // namespace fovea
