// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/table/line_reader.h"

#include <gmock/gmock.h>

#include "fovea/base/file.h"
#include "tests/data/table/support.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using namespace std::string_literals;
LineReader reader_of(const std::string& bytes, std::size_t most = 1 << 20,
                     std::size_t longest = 1 << 20) {
  return {std::make_unique<Drip>(bytes, most), "f", longest};
}

std::vector<std::string> lines_of(LineReader reader) {
  std::vector<std::string> lines;
  for (Line line; reader.next(line);) {
    lines.push_back(std::to_string(line.number) + ":" + std::string(line.text) +
                    (line.ended ? "" : "$"));
  }
  return lines;
}

TEST(LineReader, SplitsAtLfAlone) {
  EXPECT_THAT(lines_of(reader_of("")), ElementsAre());
  EXPECT_THAT(lines_of(reader_of("\n")), ElementsAre("1:"));
  EXPECT_THAT(lines_of(reader_of("a\n\nb")), ElementsAre("1:a", "2:", "3:b$"));
  EXPECT_THAT(lines_of(reader_of("a\r\nb\rc\u0085\u2028\v\fd\n")),
              ElementsAre("1:a\r", "2:b\rc\u0085\u2028\v\fd"));
}

TEST(LineReader, LeavesOutAByteOrderMarkAtTheBeginning) {
  EXPECT_THAT(lines_of(reader_of("\uFEFFa\n\uFEFFb\n", 1)), ElementsAre("1:a", "2:\uFEFFb"));
  LineReader reader = reader_of("\uFEFF");
  EXPECT_TRUE(reader.is_empty());
  EXPECT_TRUE(reader.had_byte_order_mark());
  EXPECT_FALSE(reader_of("\xEF\xBB").is_empty());
}

// Lines longer than the buffer, and ends of lines at every place of it.
TEST(LineReader, LinesAreTheSameInPiecesOfAnySize) {
  std::string bytes;
  std::vector<std::string> expected;
  Random random(1, RandomUse::kTest);
  for (int i = 0; i < 60; ++i) {
    const auto size = static_cast<std::size_t>(random.below(1 << (i % 20)));
    expected.push_back(std::to_string(i + 1) + ":" +
                       std::string(size, static_cast<char>('a' + i % 26)));
    bytes += std::string(size, static_cast<char>('a' + i % 26)) + "\n";
  }
  for (const std::size_t most : {7u, 4096u, 262'144u, 1u << 30}) {
    EXPECT_TRUE(lines_of(reader_of(bytes, most)) == expected) << most;
  }
}

TEST(LineReader, LongLinesAreAnErrorAndAreLeftOut) {
  for (const std::size_t size : {101u, 300'000u, 3'000'000u}) {
    LineReader reader =
        reader_of("a\n" + std::string(size, 'x') + "\nb\n" + std::string(100, 'y'), 4096, 100);
    Line line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_THROWS(reader.next(line), kInputFormat, "f:2: expected a line of at most 100 B");
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line.text, "b");
    EXPECT_EQ(line.number, 3);
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line.text, std::string(100, 'y'));
    EXPECT_FALSE(reader.next(line));
  }
}

TEST(LineReader, LooksAheadWithoutReading) {
  LineReader reader = reader_of(" \n\n  one two\r\nthree\n", 3);
  EXPECT_EQ(reader.peek_line(), "  one two");
  EXPECT_EQ(reader.peek_sample(), " \n\n  one two\r\nthree\n");
  EXPECT_THAT(lines_of(std::move(reader)), ElementsAre("1: ", "2:", "3:  one two\r", "4:three"));
  EXPECT_EQ(reader_of(" \n\r\n ").peek_line(), "");
  EXPECT_EQ(reader_of(std::string(500'000, 'x')).peek_sample().size(), 65'536u);
  EXPECT_GT(reader_of(std::string(500'000, 'x')).peek_line().size(), 200'000u);
}

TEST(LineReader, NamesTheBytesThatAreNoText) {
  LineReader reader = reader_of("fine \u4E2D\n\u4E2Db\xE9tise\n\u4E2D\0x\n");
  Line line;
  reader.next(line);
  EXPECT_NO_THROW(reader.require_text(line));
  reader.next(line);
  EXPECT_THROWS(reader.require_text(line), kEncoding, "f:2:3: expected UTF-8, got 0xE9 0x74");
  LineReader other = reader_of("a\nb\u4E2D\0x\n"s);
  other.next(line);
  other.next(line);
  EXPECT_THROWS(other.require_text(line), kEncoding, "f:2:3: expected text, got a NUL byte");
  LineReader utf16 = reader_of("\xFF\xFEh\0i\0\n\0"s);
  utf16.next(line);
  const auto error = error_of([&] { utf16.require_text(line); });
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->hint(), HasSubstr("UTF-16"));
}

// The encoding is guessed from all that has been read, once.
TEST(LineReader, AnyNumberOfLinesThatAreNoTextTakeTimeOfTheirBytes) {
  const auto refuse = [](index lines) {
    std::string bytes;
    for (index n = 0; n < lines; ++n) bytes += "\xFF no UTF-8\n";
    LineReader reader = reader_of(bytes);
    index refused = 0;
    for (Line line; reader.next(line);)
      refused += error_of([&] { reader.require_text(line); }) ? 1 : 0;
    EXPECT_EQ(refused, lines);
  };
  EXPECT_TRUE(grows_linearly(refuse, 800));
}

TEST(TextLines, AreReadAsTheyAre) {
  const TestFolder folder;
  const std::string file = folder / "lines.txt";
  const auto lines_of = [&](std::string_view text) {
    write_file_atomically(file, text);
    return read_text_lines(file);
  };
  EXPECT_THAT(lines_of("a b\n\n c \n"), ElementsAre("a b", "", " c "));
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                       "a\r\nb"),
              ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THROWS(lines_of(""), kEmptyInput, "lines.txt is empty");
  EXPECT_THROWS(lines_of("a\n\xFF\n"), kEncoding, "lines.txt:2");
  EXPECT_THROWS(read_text_lines(folder / "none"), kMissingInput, "none");
}

}  // namespace
}  // namespace fovea
