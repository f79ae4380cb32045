// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "fovea/text/vocabulary.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WordList, HasAWordALineInTheOrderOfTheIds) {
  TokenizerData data{.kind = "word", .words = {{"the", 9}, {"狐狸", 2}}};
  EXPECT_EQ(word_list_text(data), "<pad>\n<unk>\n<s>\n</s>\nthe\n狐狸\n");
  data.marks = false;
  EXPECT_EQ(word_list_text(data), "<pad>\n<unk>\nthe\n狐狸\n");
}

TEST(WordList, ComesBack) {
  for (const bool marks : {true, false}) {
    TokenizerData data{.kind = "word", .words = {{"the", 9}, {"狐狸", 2}, {"<S>", 1}}};
    data.marks = marks;
    const std::string text = word_list_text(data);
    EXPECT_THAT(words_of_list(text, "v", marks), ElementsAre("the", "狐狸", "<S>"));
    const std::string without_newline = text.substr(0, text.size() - 1);
    EXPECT_THAT(words_of_list(without_newline, "v", marks), ElementsAre("the", "狐狸", "<S>"));
  }
}

TEST(WordList, SaysWhatIsWrongInWhichLine) {
  const auto read = [](const std::string& text, bool marks = false) {
    return words_of_list(text, "v.txt", marks);
  };
  const std::string head = "<pad>\n<unk>\n";
  EXPECT_THROWS(read("the\n"), kInputFormat, "v.txt:1: expected <pad>, got 'the'");
  EXPECT_THROWS(read("<pad>\nthe\n"), kInputFormat, "v.txt:2: expected <unk>, got 'the'");
  EXPECT_THROWS(read(head + "the\n", true), kInputFormat, "v.txt:3: expected <s>, got 'the'");
  EXPECT_THROWS(read(head), kInputFormat, "v.txt:3: expected a word, got the end of the file");
  EXPECT_THROWS(read(""), kInputFormat, "expected a word");
  EXPECT_THROWS(read(head + "a\n\nb\n"), kInputFormat, "v.txt:4: expected one word, got ''");
  EXPECT_THROWS(read(head + "a b\n"), kInputFormat, "v.txt:3: expected one word, got 'a b'");
  EXPECT_THROWS(read(head + "a\r\n"), kInputFormat, "v.txt:3: expected one word, got 'a\\x0d'");
  EXPECT_THROWS(read(head + "a\nb\na\n"), kInputFormat,
                "v.txt:5: expected a word that is not listed yet, got 'a'");
  EXPECT_THROWS(read(head + "a\n<pad>\n"), kInputFormat, "v.txt:4: expected a word that is not");
  EXPECT_THROWS(read(head + "<s>\n</s>\n<s>\n", true), kInputFormat, "v.txt:5: expected a word");
  EXPECT_THROWS(read(head + "a\xFF\n"), kEncoding, "v.txt:3:2: invalid UTF-8");
  EXPECT_THAT(read(head + "<s>\n"), ElementsAre("<s>"));  // without marks a word like others
  EXPECT_EQ(read(head + std::string(1 << 20, 'x')).front().size(), std::size_t{1} << 20);
}

TEST(WordList, HintsAtFilesOfOtherSystems) {
  const auto hint = [](const std::string& text) {
    return error_of([&] { words_of_list(text, "v.txt", false); })->hint();
  };
  EXPECT_THAT(hint("\xEF\xBB\xBF<pad>\n<unk>\na\n"), HasSubstr("byte order mark"));
  EXPECT_THAT(hint("<pad>\r\n<unk>\r\na\r\n"), HasSubstr("without \\r"));
  EXPECT_THAT(hint("<pad>\n<unk>\na b\n"), HasSubstr("a word a line"));
}

}  // namespace
}  // namespace fovea
