// SPDX-License-Identifier: Apache-2.0
#include "fovea/report/terminal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <map>
#include <string>

namespace fovea {
namespace {

Environment environment(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

TEST(Terminal, IsInteractiveOnATerminalThatCanRedraw) {
  int master = -1, slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const auto inspect = [&](std::map<std::string, std::string> values) {
    return inspect_terminal(slave, environment(std::move(values)));
  };
  EXPECT_TRUE(inspect({{"TERM", "xterm"}}).interactive);
  EXPECT_TRUE(inspect({{"TERM", "xterm"}}).color);
  EXPECT_FALSE(inspect({{"TERM", "dumb"}}).interactive);
  EXPECT_FALSE(inspect({{"TERM", "dumb"}}).color);
  EXPECT_FALSE(inspect({}).interactive);
  EXPECT_TRUE(inspect({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).interactive);
  EXPECT_FALSE(inspect({{"TERM", "xterm"}, {"NO_COLOR", "1"}}).color);
  EXPECT_TRUE(inspect({{"TERM", "xterm"}, {"NO_COLOR", ""}}).color);
  winsize size{};
  size.ws_col = 123;
  ASSERT_EQ(::ioctl(slave, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminal_columns(slave), 123);
  ::close(slave);
  ::close(master);
}

TEST(Terminal, IsNotAFile) {
  const int fd = ::open("/dev/null", O_WRONLY);
  EXPECT_FALSE(inspect_terminal(fd, environment({{"TERM", "xterm"}})).interactive);
  EXPECT_FALSE(inspect_terminal(fd, environment({{"TERM", "xterm"}})).color);
  EXPECT_TRUE(inspect_terminal(fd, environment({{"CLICOLOR_FORCE", "1"}})).color);
  EXPECT_FALSE(inspect_terminal(fd, environment({{"CLICOLOR_FORCE", "0"}})).color);
  EXPECT_FALSE(
      inspect_terminal(fd, environment({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}})).color);
  EXPECT_EQ(terminal_columns(fd), 80);
  ::close(fd);
}

TEST(Terminal, ShowsUnicodeAsTheLocaleSays) {
  const auto unicode = [](std::map<std::string, std::string> values) {
    return inspect_terminal(2, environment(std::move(values))).unicode;
  };
  EXPECT_TRUE(unicode({{"LANG", "de_DE.UTF-8"}}));
  EXPECT_TRUE(unicode({{"LC_CTYPE", "C.utf8"}, {"LANG", "C"}}));
  EXPECT_FALSE(unicode({{"LC_ALL", "C"}, {"LANG", "de_DE.UTF-8"}}));
  EXPECT_FALSE(unicode({}));
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("plain"), 5);
  EXPECT_EQ(display_width("床前明月光"), 10);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("ｆ😀"), 4);
  EXPECT_EQ(display_width("a\xFF\xFE"), 3);
  EXPECT_EQ(display_width("━─╸"), 3);
}

TEST(FitColumns, CutsBetweenCharacters) {
  EXPECT_EQ(fit_columns("床前明月光", 10), "床前明月光");
  EXPECT_EQ(fit_columns("床前明月光", 9), "床前明...");
  EXPECT_EQ(fit_columns("床前明月光", 8), "床前...");
  EXPECT_EQ(fit_columns("plain", 4), "p...");
  EXPECT_EQ(fit_columns("plain", 2), "..");
  EXPECT_EQ(fit_columns("plain", 0), "");
  for (index columns = 0; columns < 20; ++columns) {
    EXPECT_LE(display_width(fit_columns("a床b前c明d月e光f", columns)), columns);
  }
}

TEST(Glyphs, AreCharactersWithTheirCombiningOnes) {
  EXPECT_THAT(glyphs_of("ae\u0301\u4f60"), testing::ElementsAre("a", "e\u0301", "\u4f60"));
  EXPECT_THAT(glyphs_of("\u0301b"), testing::ElementsAre("\u0301", "b"));
  EXPECT_THAT(glyphs_of("\xff!"), testing::ElementsAre("\xff", "!"));
  EXPECT_THAT(glyphs_of(""), testing::IsEmpty());
}

}  // namespace
}  // namespace fovea
