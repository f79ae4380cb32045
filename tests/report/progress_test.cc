// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/progress.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

// 2026-11-21 14:00:00 UTC, a Saturday.
constexpr std::time_t kToday = 1795269600;

class ProgressLine : public testing::Test {
 protected:
  ProgressLine() {
    ::setenv("TZ", "UTC", 1);
    ::tzset();
  }

  ProgressOptions options(ProgressStyle style, int columns = 80) {
    return {.style = style,
            .terminal = {.interactive = true, .color = false, .unicode = true},
            .columns = [columns] { return columns; },
            .seconds = [this] { return now_; },
            .today = [this] { return kToday + static_cast<std::time_t>(now_ - 100); }};
  }

  // The state of a run that began at 100 s.
  ProgressState at(index step, index steps = 2000) const {
    const double fraction = static_cast<double>(step) / static_cast<double>(steps);
    return {.fraction = fraction,
            .step = step,
            .steps = steps,
            .loss = 1.88124,
            .tokens_per_second = 24123,
            .seconds_left = (now_ - 100) * (1 - fraction) / fraction};
  }

  // The text that was written since the last call.
  std::string written() {
    std::string text = out_.str();
    out_.str("");
    return text;
  }

  double now_ = 100;
  std::ostringstream out_;
};

TEST_F(ProgressLine, PlainLinesAreWholeAndRare) {
  Progress progress(out_, options(ProgressStyle::kPlain));
  now_ = 101;
  progress.update(at(20));
  EXPECT_EQ(written(),
            "update 20/2000 (1%): train loss 1.8812, 24.1k tokens/s, 0:01 elapsed, 1:39 left, ends "
            "14:01\n");
  now_ = 110.9;
  progress.update(at(200));
  EXPECT_EQ(written(), "");
  now_ = 151;
  progress.busy("evaluating");
  EXPECT_EQ(written(), "");
  ProgressState state = at(1240);
  state.valid = {1.9, 1200};
  progress.update(state);
  EXPECT_EQ(
      written(),
      "update 1240/2000 (62%): train loss 1.8812, valid 1.9000 at update 1200, 24.1k tokens/s, "
      "0:51 elapsed, 0:31 left, ends 14:01\n");
  now_ = 152;
  progress.update(at(1300));
  progress.note("saved");
  EXPECT_EQ(written(), "saved\n");
  progress.finish();
  EXPECT_THAT(written(), HasSubstr("update 1300/2000 (65%)"));
  progress.finish();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressLine, IsPutIntoAnotherLanguageSentenceBySentence) {
  ProgressOptions plain = options(ProgressStyle::kPlain);
  std::string said;
  plain.words = [&](std::string_view words) {
    said = words;
    return std::string("训练中");
  };
  Progress progress(out_, plain);
  now_ = 101;
  progress.update(at(20));
  EXPECT_EQ(written(), "训练中\n");
  EXPECT_THAT(said, HasSubstr("update 20/2000 (1%): train loss 1.8812, 24.1k tokens/s"));
  EXPECT_THAT(said, HasSubstr(" left, ends 14:01"));
}

TEST_F(ProgressLine, ABarOfAnotherLanguageFitsTheColumns) {
  for (const int columns : {20, 40, 60, 80, 120}) {
    ProgressOptions bar = options(ProgressStyle::kBar, columns);
    bar.words = [](std::string_view words) {
      return words.starts_with("loss") ? std::string("损失 1.8812")
                                       : std::string("已用时间很长很长");
    };
    Progress progress(out_, bar);
    now_ = 101;
    progress.update(at(20));
    const std::string line = written();
    EXPECT_THAT(line, HasSubstr("损失"));
    EXPECT_LT(display_width(line), columns + 4) << line;  // with the code that erases the line
  }
}

// Validated between two lines, the loss is that of the update before; it says so until the next.
TEST_F(ProgressLine, TheValidationLossSaysOfWhichUpdateItIs) {
  Progress progress(out_, options(ProgressStyle::kPlain));
  progress.update(at(500));
  progress.validated(2.25);
  written();
  now_ += 20;
  ProgressState state = at(740);
  state.valid = {2.25, 500};
  progress.update(state);
  EXPECT_THAT(written(),
              HasSubstr("update 740/2000 (37%): train loss 1.8812, valid 2.2500 at update 500, "));
}

TEST_F(ProgressLine, PlainLinesHaveNoControlCharacters) {
  ProgressOptions plain = options(ProgressStyle::kPlain);
  plain.terminal.color = true;
  Progress progress(out_, plain);
  for (index step = 1; step <= 2000; ++step) {
    now_ += 0.5;
    progress.update(at(step));
    if (step % 100 == 0) progress.note("note");
  }
  progress.finish();
  const std::string text = written();
  for (const char c : text) ASSERT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7F)) << text;
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(ProgressLine, BarIsDrawnAtMostTenTimesASecond) {
  Progress progress(out_, options(ProgressStyle::kBar));
  int draws = 0;
  for (index step = 1; step <= 1000; ++step) {
    now_ += 0.01;
    progress.update(at(step));
    const std::string text = written();
    if (!text.empty()) {
      ++draws;
      ASSERT_TRUE(text.starts_with("\r\x1b[K"));
      ASSERT_EQ(text.find('\n'), std::string::npos);
      ASSERT_LT(display_width(text.substr(4)), 80);
    }
  }
  EXPECT_GE(draws, 90);
  EXPECT_LE(draws, 101);
}

TEST_F(ProgressLine, BarShowsAllWhereThereIsRoom) {
  Progress progress(out_, options(ProgressStyle::kBar, 155));
  now_ = 151;
  ProgressState state = at(1240);
  state.valid = {1.9, 1200};
  progress.update(state);
  EXPECT_EQ(
      written(),
      "\r\x1b[K 62% ━━━━━━━━━━━━━━━━━━━━━━━━╸───────────────  1240/2000  loss 1.8812  valid 1.9000 "
      "at update 1200  24.1k tokens/s  0:51 elapsed, 0:31 left  ends 14:01");
}

TEST_F(ProgressLine, BarLeavesOutWhatDoesNotFit) {
  for (int columns = 1; columns < 160; ++columns) {
    now_ = 100;
    Progress progress(out_, options(ProgressStyle::kBar, columns));
    now_ = 151;
    ProgressState state = at(1240);
    state.valid = {1.9, 1200};
    progress.update(state);
    const std::string line = written().substr(4);
    ASSERT_LE(display_width(line), columns - 1) << line;
    if (columns >= 80) {
      EXPECT_THAT(line, HasSubstr("0:51 elapsed, 0:31 left"));
    }
    if (columns >= 80) {
      EXPECT_THAT(line, HasSubstr("tokens/s"));
    }
    if (columns >= 30) {
      EXPECT_THAT(line, HasSubstr("loss 1.8812"));
    }
    if (columns >= 30) {
      EXPECT_THAT(line, HasSubstr("━"));
    }
  }
}

TEST_F(ProgressLine, BarIsAsciiWithoutUnicodeAndColouredOnRequest) {
  ProgressOptions ascii = options(ProgressStyle::kBar, 60);
  ascii.terminal.unicode = false;
  Progress plain(out_, ascii);
  plain.update(at(1000));
  const std::string text = written().substr(4);
  EXPECT_THAT(text, HasSubstr("##"));
  for (const char c : text) ASSERT_TRUE(c >= 0x20 && c < 0x7F);
  ProgressOptions colored = options(ProgressStyle::kBar, 60);
  colored.terminal.color = true;
  Progress bright(out_, colored);
  bright.update(at(1000));
  EXPECT_THAT(written(), HasSubstr("\x1b[36m━"));
}

TEST_F(ProgressLine, BarSaysWhatIsBeingDone) {
  Progress progress(out_, options(ProgressStyle::kBar));
  progress.busy("loading");
  EXPECT_EQ(written(), "");
  progress.update(at(10));
  written();
  progress.busy("evaluating");
  EXPECT_THAT(written(), HasSubstr("evaluating"));
  now_ += 1;
  progress.update(at(11));
  EXPECT_THAT(written(), Not(HasSubstr("evaluating")));
}

TEST_F(ProgressLine, NotesStandAboveTheBar) {
  Progress progress(out_, options(ProgressStyle::kBar));
  progress.update(at(10));
  written();
  progress.note("saved 床前");
  const std::string text = written();
  EXPECT_TRUE(text.starts_with("\r\x1b[Ksaved 床前\n\r\x1b[K"));
  EXPECT_EQ(text.find('\n', text.find('\n') + 1), std::string::npos);
  progress.finish();
  EXPECT_TRUE(written().ends_with("\n"));
  progress.note("done");
  EXPECT_EQ(written(), "done\n");
}

TEST_F(ProgressLine, TellsTheTimeLeftAsItIsGiven) {
  Progress progress(out_, options(ProgressStyle::kPlain));
  ProgressState state = at(1000);
  state.seconds_left = std::nullopt;
  progress.update(state);
  EXPECT_THAT(written(), HasSubstr("? left, ends ?"));
  now_ += 40;
  state.seconds_left = 160;
  progress.update(state);
  EXPECT_THAT(written(), HasSubstr("0:40 elapsed, 2:40 left, ends 14:03"));
}

TEST_F(ProgressLine, CanBeSilent) {
  Progress progress(out_, options(ProgressStyle::kNone));
  progress.update(at(1));
  progress.busy("evaluating");
  progress.finish();
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressLine, BearsAnyState) {
  for (const ProgressStyle style : {ProgressStyle::kPlain, ProgressStyle::kBar}) {
    for (const double odd : {0.0, 1.0, 2.0, -1.0, 1e300, -HUGE_VAL, HUGE_VAL, std::nan("")}) {
      Progress progress(out_, options(style));
      now_ += 1;
      progress.update({.fraction = std::isfinite(odd) ? odd : 0.5,
                       .loss = odd,
                       .tokens_per_second = odd,
                       .seconds_left = odd});
      progress.finish();
      EXPECT_LT(written().size(), 300u);
    }
  }
}

TEST_F(ProgressLine, FormatsTimes) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(59.99), "0:59");
  EXPECT_EQ(format_duration(750), "12:30");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(2 * 86400 + 3 * 3600 + 4 * 60 + 5), "2d 03:04");
  EXPECT_EQ(format_duration(-1), "?");
  EXPECT_EQ(format_duration(std::nan("")), "?");
  EXPECT_EQ(format_duration(1e12), "?");
  EXPECT_EQ(format_end(kToday, 32 * 60), "14:32");
  EXPECT_EQ(format_end(kToday, 11 * 3600), "Sun 01:00");
  EXPECT_EQ(format_end(kToday, 12.0 * 86400), "2026-12-03 14:00");
  EXPECT_EQ(format_end(kToday, HUGE_VAL), "?");
  EXPECT_EQ(format_rate(0), "0");
  EXPECT_EQ(format_rate(999.4), "999");
  EXPECT_EQ(format_rate(999.6), "1.0k");
  EXPECT_EQ(format_rate(999960), "1.00M");
  EXPECT_EQ(format_rate(std::nan("")), "?");
}

}  // namespace
}  // namespace fovea
