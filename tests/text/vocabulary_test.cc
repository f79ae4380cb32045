// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/vocabulary.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"

namespace fovea {
namespace {

using testing::HasSubstr;

TokenizerData example() { return {.kind = "char", .characters = {U'e', U'中', 0, 0x10FFFF}}; }

TokenizerData words() {
  return {.kind = "word",
          .lower = true,
          .marks = false,
          .unknown = 7,
          .words = {{"the", 12}, {"<s>", 3}, {"狐狸", 3}, {"a\u200B\u0001", 0}}};
}

void expect_damaged(const std::string& text, std::string_view message) {
  try {
    tokenizer_data_from_text(text, "m/tokenizer.txt");
    ADD_FAILURE() << "accepted: " << escape_text(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kModelDamaged);
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_NE(error.hint(), "");
  }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(TokenizerText, IsReadableAndCanonical) {
  EXPECT_EQ(to_text(example()),
            "fovea-tokenizer 1\nkind char\ncharacters 4\nU+0065\nU+4E2D\nU+0000\nU+10FFFF\n"
            "checksum 5b5d12434b1f994c\n");
  EXPECT_EQ(to_text({.kind = "byte", .characters = {}}),
            "fovea-tokenizer 1\nkind byte\ncharacters 0\nchecksum cff14503b7c0beff\n");
}

TEST(TokenizerText, OfWordsIsReadable) {
  EXPECT_EQ(to_text(words()),
            "fovea-tokenizer 1\nkind word\nlower true\nmarks false\nunknown 7\nwords 4\nthe 12\n"
            "<s> 3\n狐狸 3\na\u200B\u0001 0\nchecksum 06a24eb3893da8cd\n");
  EXPECT_EQ(to_text({.kind = "word", .words = {{"the", 1}}}),
            "fovea-tokenizer 1\nkind word\nunknown 0\nwords 1\nthe 1\nchecksum 57637e932254c9eb\n");
}

TEST(TokenizerText, ComesBackAsItWas) {
  EXPECT_EQ(tokenizer_data_from_text(to_text(example()), "t"), example());
  Random random(7, RandomUse::kTest);
  std::string text;
  for (int i = 0; i < 5000; ++i) append_utf8(text, static_cast<char32_t>(random.below(0x30000)));
  TokenizerData data = {.kind = "char", .characters = characters_by_frequency(text, "t")};
  EXPECT_GT(data.characters.size(), 4000u);
  EXPECT_EQ(tokenizer_data_from_text(to_text(data), "t"), data);
  data.lower = true;
  data.marks = false;
  EXPECT_EQ(tokenizer_data_from_text(to_text(data), "t"), data);
  EXPECT_EQ(tokenizer_data_from_text(to_text(words()), "t"), words());
}

TEST(TokenizerText, SaysWhatIsWrong) {
  const std::string good = to_text(example());
  expect_damaged("", "m/tokenizer.txt:1: expected fovea-tokenizer 1, got the end of the file");
  expect_damaged(replaced(good, "tokenizer 1", "tokenizer 2"),
                 "expected 'fovea-tokenizer 1', got 'fovea-tokenizer 2'");
  expect_damaged(replaced(good, "kind ", "sort "), ":2: expected 'kind ...', got 'sort char'");
  expect_damaged(replaced(good, "s 4", "s -4"), ":3: expected a number of characters, got '-4'");
  expect_damaged(replaced(good, "s 4", "s 04"), ":3: expected a number of characters, got '04'");
  expect_damaged(replaced(good, "s 4", "s 99999999999999999999"), ":3: expected a number");
  expect_damaged(replaced(good, "s 4", "s 5"), ":8: expected a character such as 'U+4E2D'");
  expect_damaged(replaced(good, "s 4", "s 3"), ":7: expected 'checksum ");
  expect_damaged(replaced(good, "U+0065", "U+65"), ":4: expected a character");
  expect_damaged(replaced(good, "U+4E2D", "U+4e2d"), ":5: expected a character");
  expect_damaged(replaced(good, "U+4E2D", "U+D800"), ":5: expected a character");
  expect_damaged(replaced(good, "U+10FFFF", "U+110000"), ":7: expected a character");
  expect_damaged(replaced(good, "U+4E2D", "U+0065"),
                 ":5: expected a character that is not listed yet");
  expect_damaged(replaced(good, "U+4E2D", "U+4E2E"), ":8: expected 'checksum ");
  expect_damaged(good + "x", "expected the end of the file, got 1 bytes more");
}

TEST(TokenizerText, OfWordsSaysWhatIsWrong) {
  const std::string good = to_text(words());
  expect_damaged(replaced(good, "lower true", "lower false"), ":3: expected 'lower true'");
  expect_damaged(replaced(good, "marks false", "marks true"), ":4: expected 'marks false'");
  expect_damaged(replaced(good, "unknown 7", "unknown -7"), ":5: expected a number of unknown");
  expect_damaged(replaced(good, "words 4", "words 4294967296"), ":6: expected a number of words");
  expect_damaged(replaced(good, "words 4", "words 2147483646"), ":6: expected a number of words");
  expect_damaged(replaced(good, "words 4", "words 5"), ":11: expected a word and its count");
  expect_damaged(replaced(good, "words 4", "words 2147483645"), ":11: expected a word and its");
  expect_damaged(replaced(good, "words 4", "words 3"), ":10: expected 'checksum ");
  for (const std::string line :
       {"the", "the ", " 12", "the -1", "the 012", "the 1 2", "the\t12", "the\u00A0 12",
        "the 99999999999999999999", "\xFF 12", "the\xC3 12", ""}) {
    expect_damaged(replaced(good, "the 12", line), ":7: expected a word and its count");
  }
  expect_damaged(replaced(good, "狐狸", "the"), ":9: expected a word that is not listed yet");
  expect_damaged(replaced(good, "<s>", "<unk>"), ":8: expected a word that is not listed yet");
  // With marks, their names are no words.
  expect_damaged(replaced(good, "marks false\n", ""), ":7: expected a word that is not listed yet");
}

TEST(TokenizerText, NoticesEveryCutAndEveryFlippedBit) {
  for (const std::string& good : {to_text(example()), to_text(words())}) {
    for (std::size_t size = 0; size < good.size(); ++size) expect_damaged(good.substr(0, size), "");
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
      expect_damaged(bad, "");
    }
  }
}

}  // namespace
}  // namespace fovea
