// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/corpus.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "fovea/base/error.h"
#include "tests/data/support.h"

namespace fovea {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class Corpora : public testing::Test {
 protected:
  Corpora() {
    std::string pattern = testing::TempDir() + "corpusXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Corpora() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Corpora, JoinsFilesWithANewlineWhereOneIsMissing) {
  const auto corpus =
      read_corpus({.train = {file("a", "one"), file("b", "two\n"), file("c", "three")},
                   .valid = {file("v", "x"), file("w", "y\n")},
                   .valid_fraction = 0.5});
  EXPECT_EQ(corpus.train, "one\ntwo\nthree");
  EXPECT_EQ(corpus.valid, "x\ny\n");
  EXPECT_THAT(corpus.notes, IsEmpty());
}

TEST_F(Corpora, SplitsByCharacters) {
  const auto corpus =
      read_corpus({.train = {file("a", "一二三四五六七八九十")}, .valid_fraction = 0.3});
  EXPECT_EQ(corpus.train, "一二三四五六七");
  EXPECT_EQ(corpus.valid, "八九十");
}

TEST_F(Corpora, SplitsAsTheCommonRecipeDoes) {
  // nanoGPT: data[:int(n * 0.9)]; tinyshakespeare has 1115394 characters.
  EXPECT_EQ(split_offset(std::string(1115394, 'x'), 0.1, SplitAt::kCharacter), 1003854);
}

// 1 - 0.9 is not 0.1 in doubles: what decimal arithmetic keeps is kept.
TEST_F(Corpora, SplitsAsDecimalsSay) {
  for (const index tenths : {1, 2, 3, 5, 7, 9}) {
    const double fraction = static_cast<double>(tenths) / 10;
    for (const index n : {10, 40, 100, 1000, 123450, 10000000}) {
      EXPECT_EQ(split_offset(std::string(static_cast<std::size_t>(n), 'x'), fraction,
                             SplitAt::kCharacter),
                n / 10 * (10 - tenths));
    }
  }
  EXPECT_EQ(split_offset(std::string(1000, 'x'), 0, SplitAt::kCharacter), 1000);
}

TEST_F(Corpora, SplitsBetweenWords) {
  const std::string text = "aaaa bbbb\u3000cccc dddd";
  EXPECT_EQ(split_offset(text, 0.5, SplitAt::kWord), 9);   // 9 characters: at the white space
  EXPECT_EQ(split_offset(text, 0.4, SplitAt::kWord), 16);  // 11 characters: in the third word
  EXPECT_EQ(split_offset(text, 0.1, SplitAt::kWord), 21);
  expect_error(ErrorCode::kInputTooSmall, "hold no whole word",
               [&] { read_corpus({.train = {file("a", "oneword")}, .split_at = SplitAt::kWord}); });
}

TEST_F(Corpora, SplitsAtLines) {
  const std::string text = "aaaa\nbbbb\ncccc\ndddd\n";
  EXPECT_EQ(split_offset(text, 0.5, SplitAt::kLine), 10);
  EXPECT_EQ(split_offset(text, 0.45, SplitAt::kLine), 15);  // one character into the third line
  EXPECT_EQ(split_offset(text, 0, SplitAt::kLine), 20);
  expect_error(ErrorCode::kInputTooSmall, "hold no whole line", [&] {
    read_corpus({.train = {file("a", "one line only")}, .split_at = SplitAt::kLine});
  });
}

TEST_F(Corpora, NothingValidatesIfTheFractionIsZero) {
  const auto corpus = read_corpus({.train = {file("a", "text")}, .valid_fraction = 0});
  EXPECT_EQ(corpus.train, "text");
  EXPECT_EQ(corpus.valid, "");
}

TEST_F(Corpora, RefusesFractionsOutOfRange) {
  for (const double bad : {-0.1, 1.0, 2.0, std::nan(""), HUGE_VAL}) {
    expect_error(ErrorCode::kOptionValue, "--valid-fraction: ", [&] {
      read_corpus({.train = {file("a", "text")}, .valid_fraction = bad});
    });
  }
}

TEST_F(Corpora, RefusesWhatIsNoTextFile) {
  const auto read = [](const std::string& name) { return [=] { read_corpus({.train = {name}}); }; };
  expect_error(ErrorCode::kUsage, "no training file", [] { read_corpus({}); });
  expect_error(ErrorCode::kMissingInput, path("none"), read(path("none")));
  expect_error(ErrorCode::kEmptyInput, "empty: the file is empty", read(file("empty", "")));
  expect_error(ErrorCode::kNotARegularFile, "a directory", read(path("")));
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  expect_error(ErrorCode::kNotARegularFile, "a FIFO", read(path("fifo")));
}

TEST_F(Corpora, NamesFileLineAndColumnOfInvalidUtf8) {
  const std::string good = file("good", "fine\n");
  const std::string bad = file("bad", "ab\nc\xC3(");
  expect_error(ErrorCode::kEncoding, bad + ":2:2: invalid UTF-8 at byte 4 (0xC3 0x28)", [&] {
    read_corpus({.train = {good, bad}});
  });
  expect_error(ErrorCode::kEncoding, bad + ":2:2",
               [&] { read_corpus({.train = {good}, .valid = {bad}}); });
  const std::string utf16 = file("utf16", "h\0e\0l\0l\0o\0"s);
  try {
    read_corpus({.train = {utf16}});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEncoding);
    EXPECT_THAT(error.what(), HasSubstr("NUL"));
    EXPECT_THAT(error.hint(), HasSubstr("UTF-16LE"));
  }
}

TEST_F(Corpora, KeepsAnyBytesOnRequest) {
  const std::string bytes = "\xFF\0\x80\r\n\xFE"s;
  const auto corpus = read_corpus(
      {.train = {file("a", bytes)}, .valid_fraction = 0, .encoding = TextEncoding::kAnyBytes});
  EXPECT_EQ(corpus.train, bytes);
  EXPECT_THAT(corpus.notes, IsEmpty());
}

TEST_F(Corpora, NotesByteOrderMarksAndCrLfAndKeepsThem) {
  const std::string text = "\uFEFFone\r\ntwo\nthree\r\n";
  const auto corpus = read_corpus({.train = {file("a", text)}, .valid_fraction = 0});
  EXPECT_EQ(corpus.train, text);
  EXPECT_THAT(corpus.notes,
              ElementsAre(EndsWith("a: starts with a byte order mark, kept as a character"),
                          EndsWith("a: 2 of 3 lines end with CR LF; the CR stays in the text")));
}

}  // namespace
}  // namespace fovea
