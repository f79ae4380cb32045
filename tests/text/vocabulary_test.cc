// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "fovea/text/utf8.h"
#include "fovea/text/words.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/support/words_of_one_hash.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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

TEST(WordTable, FindsWhatWasAdded) {
  WordTable table(3);
  EXPECT_TRUE(table.add("fox", 7));
  EXPECT_TRUE(table.add("a", 8));
  EXPECT_TRUE(table.add("a word of many bytes", 9));
  EXPECT_EQ(table.find("fox"), 7);
  EXPECT_EQ(table.find("a"), 8);
  EXPECT_EQ(table.find("a word of many bytes"), 9);
  EXPECT_EQ(table.find("foxes"), kNoToken);
  EXPECT_EQ(table.find("a word of many bytez"), kNoToken);
  EXPECT_EQ(table.find(""), kNoToken);
}

TEST(WordTable, TakesEachWordOnce) {
  WordTable table(2);
  EXPECT_TRUE(table.add("fox", 7));
  EXPECT_FALSE(table.add("fox", 8));
  EXPECT_EQ(table.find("fox"), 7);
}

TEST(WordTable, EmptyTableHasNothing) { EXPECT_EQ(WordTable(0).find("fox"), kNoToken); }

TEST(WordTable, RefusesWhatItHasNoRoomFor) {
  WordTable table(1);
  EXPECT_THROWS(table.add("", 1), kInternal, "an empty word");
  table.add("a", 1);
  table.add("b", 2);
  EXPECT_THROWS(table.add("c", 3), kInternal, "more than there is room for");
}

// Words of few letters and of every length, many of which begin or end alike, and bytes of 0.
TEST(WordTable, AgreesWithAMapOfStrings) {
  constexpr int kWords = 20000;
  Random random(1, RandomUse::kTest);
  const auto drawn = [&] {
    std::string word(1 + random.next_u32() % 20, 'a');
    for (char& c : word) c = "ab\0"[random.next_u32() % 3];
    return word;
  };
  std::vector<std::string> words;
  for (int n = 0; n < kWords; ++n) words.push_back(drawn());
  WordTable table(words.size());
  std::unordered_map<std::string, token> expected;
  for (token id = 0; id < kWords; ++id) {
    const std::string& word = words[static_cast<std::size_t>(id)];
    EXPECT_EQ(table.add(word, id), expected.emplace(word, id).second);
  }
  for (const auto& [word, id] : expected) ASSERT_EQ(table.find(word), id);
  for (int n = 0; n < kWords; ++n) {
    const std::string word = drawn();
    const auto found = expected.find(word);
    ASSERT_EQ(table.find(word), found == expected.end() ? kNoToken : found->second);
  }
}

// Words of eight bytes that had the same place by the hash that this table had once: a product with
// a known factor, which can be divided by.
TEST(WordTable, WordsThatWereChosenToMeetDoNot) {
  constexpr std::uint64_t kInverse = 0xF1DE83E19937733D;
  static_assert(kInverse * 0x9E3779B97F4A7C15u == 1);
  constexpr std::size_t kWords = 30'000;
  const auto before_mix = [](std::uint64_t hash) { return (hash ^ hash >> 32) * kInverse; };
  std::vector<std::string> chosen;
  for (std::uint64_t n = 1; n <= kWords; ++n) {
    const std::uint64_t start = before_mix(before_mix(n << 32)) ^ 8;
    chosen.emplace_back(8, '\0');
    std::memcpy(chosen.back().data(), &start, 8);
  }
  const auto fill = [](const std::vector<std::string>& words) {
    WordTable table(words.size());
    for (std::size_t n = 0; n < words.size(); ++n) {
      EXPECT_TRUE(table.add(words[n], static_cast<token>(n)));
    }
    EXPECT_EQ(table.find(words.back()), static_cast<token>(words.size() - 1));
  };
  const std::vector<std::string> ordinary = ordinary_words(kWords);
  EXPECT_LT(seconds_of([&] { fill(chosen); }), 0.02 + 30 * seconds_of([&] { fill(ordinary); }));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::string_view word = take_word(text);
    if (word.empty()) return words;
    words.emplace_back(word);
  }
}

TEST(TakeWord, TakesWhatStandsBetweenWhiteSpace) {
  EXPECT_THAT(words_of("the little prince"), ElementsAre("the", "little", "prince"));
  EXPECT_THAT(words_of("  the\t\r\n\v\flittle \n"), ElementsAre("the", "little"));
  EXPECT_THAT(words_of("a\u00A0b\u3000c\u2028d\u0085e\u1680f\u202Fg"),
              ElementsAre("a", "b", "c", "d", "e", "f", "g"));
  EXPECT_THAT(words_of("a\u200Bb \uFEFFc \u001Cd"), ElementsAre("a\u200Bb", "\uFEFFc", "\u001Cd"));
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of(" \n\u2003"), IsEmpty());
  EXPECT_THAT(words_of(std::string_view("a\0b c", 5)), ElementsAre(std::string("a\0b", 3), "c"));
  EXPECT_EQ(count_words("  the\u3000fox  "), 2);
  EXPECT_EQ(count_words(" \n"), 0);
}

// Every character alone between two letters, by the plain definition.
TEST(TakeWord, KnowsWhiteSpaceOfAllCharacters) {
  index spaces = 0;
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (!is_scalar_value(c)) continue;
    std::string text = "a";
    append_utf8(text, c);
    text += 'b';
    ASSERT_EQ(count_words(text), is_white_space(c) ? 2 : 1) << static_cast<std::uint32_t>(c);
    spaces += is_white_space(c) ? 1 : 0;
  }
  EXPECT_EQ(spaces, 25);  // Unicode 15, PropList.txt
}

TEST(DistinctWords, AreInTheOrderOfTheirFirstOccurrence) {
  EXPECT_THAT(distinct_words("b a b\nc a b", "t", LetterCase::kKept),
              ElementsAre(CountedWord{"b", 3}, CountedWord{"a", 2}, CountedWord{"c", 1}));
  EXPECT_THAT(distinct_words("B \u00C9a b \u00E9A", "t", LetterCase::kLower),
              ElementsAre(CountedWord{"b", 2}, CountedWord{"\u00E9a", 2}));
  EXPECT_THAT(distinct_words(" ", "t", LetterCase::kKept), IsEmpty());
  EXPECT_THROWS(distinct_words("a\n\xFF", "book.txt", LetterCase::kKept), kEncoding,
                "book.txt:2:1: invalid UTF-8");
}

TEST(DistinctWords, AreThoseOfAMap) {
  Random random(5, RandomUse::kTest);
  std::string text;
  std::map<std::string, index> expected;
  for (int i = 0; i < 200000; ++i) {
    const std::string word = "w" + std::to_string(random.below(1 + random.below(90000)));
    ++expected[word];
    text += word + (random.below(9) == 0 ? "\n" : " ");
  }
  std::map<std::string, index> found;
  for (const auto& [word, count] : distinct_words(text, "t", LetterCase::kKept)) {
    EXPECT_TRUE(found.emplace(word, count).second) << word;
  }
  EXPECT_GT(found.size(), 50000u);
  EXPECT_EQ(found, expected);
}

// Spec T7: by descending frequency, ties in the order of their first occurrence.
TEST(FrequentWords, AreOrderedByCountAndThenAsTheyCame) {
  const std::vector<CountedWord> words = {{"z", 1}, {"b", 2}, {"y", 3}, {"a", 2}, {"x", 3}};
  EXPECT_THAT(frequent_words(words, 1),
              ElementsAre(CountedWord{"y", 3}, CountedWord{"x", 3}, CountedWord{"b", 2},
                          CountedWord{"a", 2}, CountedWord{"z", 1}));
  EXPECT_EQ(frequent_words(words, 2).size(), 4u);
  EXPECT_THAT(frequent_words(words, 3), ElementsAre(CountedWord{"y", 3}, CountedWord{"x", 3}));
  EXPECT_THAT(frequent_words(words, 4), IsEmpty());
}

TEST(CharactersByFrequency, CanBeThoseInLowerCase) {
  EXPECT_THAT(characters_by_frequency("aAbA", "t"), ElementsAre(U'A', U'a', U'b'));
  EXPECT_THAT(characters_by_frequency("aAbA", "t", LetterCase::kLower), ElementsAre(U'a', U'b'));
}

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
