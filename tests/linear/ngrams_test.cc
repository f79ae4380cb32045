// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/ngrams.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/linear/support.h"
#include "tests/support/throws.h"
#include "tests/support/time_taken.h"
#include "tests/support/words_of_one_hash.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// "name=bytes of the text" of each n-gram.
std::vector<std::string> read(const std::string& text, const NgramRules& rules, NgramKind kind) {
  NgramReader reader(rules);
  reader.read(text);
  std::vector<std::string> all;
  reader.for_each(kind, [&](std::string_view name, std::size_t begin, std::size_t end) {
    all.push_back(std::string(name) + "=" + text.substr(begin, end - begin));
  });
  return all;
}

TEST(NgramLengths, AreReadAndWritten) {
  EXPECT_FALSE(parse_lengths("0", "x").any());
  EXPECT_EQ(parse_lengths("2", "x"), (NgramLengths{2, 2}));
  EXPECT_EQ(parse_lengths("1-3", "x"), (NgramLengths{1, 3}));
  for (const char* text : {"0", "2", "1-3", "1-8"}) {
    EXPECT_EQ(to_string(parse_lengths(text, "x")), text);
  }
  for (const char* text : {"", "-", "1-", "-2", "2-1", "0-2", "1-9", "9", "1-2-3", "1 ", "+1",
                           "auto", "99999999999", "1–2"}) {
    EXPECT_THROWS(parse_lengths(text, "word-ngrams"), kOptionValue, "word-ngrams");
  }
}

TEST(NgramReader, NamesWordsAndWhereTheyStand) {
  const NgramRules rules = rules_of("1-2", "0");
  EXPECT_THAT(read("Don't  go, Go", rules, NgramKind::kWords),
              ElementsAre("don't=Don't", "don't go=Don't  go", "go=go", "go ,=go,", ",=,",
                          ", go=, Go", "go=Go"));
  EXPECT_THAT(read("", rules, NgramKind::kWords), ElementsAre());
  EXPECT_THAT(read(" \t\n", rules, NgramKind::kWords), ElementsAre());
  NgramRules kept = rules_of("2", "0");
  kept.lower = false;
  EXPECT_THAT(read("Go Go go", kept, NgramKind::kWords), ElementsAre("Go Go=Go Go", "Go go=Go go"));
}

TEST(NgramReader, NamesCharactersInsideOfWords) {
  EXPECT_THAT(read("Ab c", rules_of("0", "1-3"), NgramKind::kCharacters),
              ElementsAre(" a=A", " ab=Ab", "a=A", "ab=Ab", "ab =Ab", "b=b", "b =b", " c=c",
                          " c =c", "c=c", "c =c"));
  EXPECT_THAT(read("我们", rules_of("0", "2"), NgramKind::kCharacters),
              ElementsAre(" 我=我", "我们=我们", "们 =们"));
}

// Ⱥ has two bytes, and ⱥ three: what is shown are bytes of the text, not of the name.
TEST(NgramReader, KnowsTheTextWhereLowerCaseHasMoreBytes) {
  EXPECT_THAT(read("xȺy", rules_of("0", "1"), NgramKind::kCharacters),
              ElementsAre("x=x", "ⱥ=Ⱥ", "y=y"));
}

TEST(NgramReader, LeavesOutLongNames) {
  const std::string longest(NgramReader::kLongestName, 'a'), longer = longest + "a";
  EXPECT_THAT(read(longest + " b " + longer, rules_of("1-2", "0"), NgramKind::kWords),
              ElementsAre(longest + "=" + longest, "b=b"));
}

TEST(NgramNames, FindWhatWasAdded) {
  NgramNames names;
  for (int n = 0; n < 5000; ++n) EXPECT_EQ(names.add(std::to_string(n)), n);
  EXPECT_EQ(names.add("77"), 77);
  EXPECT_EQ(names.size(), 5000);
  EXPECT_EQ(names.find("4999"), 4999);
  EXPECT_EQ(names.find("5000"), -1);
  EXPECT_EQ(names.name(123), "123");
  const NgramNames again = NgramNames::from_text(names.text(), "file");
  EXPECT_EQ(again.text(), names.text());
  EXPECT_EQ(again.find("4999"), 4999);
}

TEST(NgramNames, FindManyAsTheyFindEach) {
  NgramNames names;
  for (int n = 0; n < 5000; n += 3) names.add(std::to_string(n));
  std::vector<std::string> wanted;
  for (int n = 0; n < 1000; ++n) wanted.push_back(std::to_string(n * 7));
  std::vector<std::int32_t> found, each;
  names.find_all(std::vector<std::string_view>(wanted.begin(), wanted.end()), found);
  for (const std::string& name : wanted) {
    if (names.find(name) >= 0) each.push_back(names.find(name));
  }
  EXPECT_EQ(found, each);
  EXPECT_GT(found.size(), 200U);
}

// A text of more n-grams than are sorted by comparing them.
TEST(CountRows, HasColumnsThatAscend) {
  Draws draws(1);
  NgramNames names;
  std::map<std::int32_t, float> wanted;
  std::string text;
  for (int n = 0; n < 3000; ++n) names.add("w" + std::to_string(n));
  for (int n = 0; n < 2000; ++n) {
    const auto word = static_cast<std::int32_t>(draws.below(3000));
    text += "w" + std::to_string(word) + " ";
    wanted[word] += 1;
  }
  const SparseRows rows =
      count_rows(Context(1), std::vector{text}, rules_of("1", "0"), NgramKind::kWords, names);
  std::map<std::int32_t, float> found;
  for (std::size_t n = 0; n < rows.columns.size(); ++n) found[rows.columns[n]] = rows.values[n];
  EXPECT_EQ(found, wanted);
  EXPECT_TRUE(std::is_sorted(rows.columns.begin(), rows.columns.end()));
}

TEST(NgramNames, RefuseDamagedText) {
  EXPECT_EQ(NgramNames::from_text("", "file").size(), 0);
  EXPECT_THROWS(NgramNames::from_text("a\nb", "file"), kModelDamaged, "file");
  EXPECT_THROWS(NgramNames::from_text("a\n\nb\n", "file"), kModelDamaged, "file");
  EXPECT_THROWS(NgramNames::from_text("a\nb\na\n", "file"), kModelDamaged, "a stands there twice");
}

TEST(NgramNames, CannotBeChosenToBeSlow) {
  const std::vector<std::string> words = words_of_one_hash(5000);
  EXPECT_TRUE(grows_linearly(
      [&](index count) {
        NgramNames names;
        for (index n = 0; n < count; ++n) names.add(words[static_cast<std::size_t>(n)]);
      },
      500));
}

// By a map that needs no hash.
std::map<std::string, int> naive_counts(const std::string& text, const NgramRules& rules,
                                        NgramKind kind) {
  std::map<std::string, int> counts;
  for (const std::string& found : read(text, rules, kind))
    ++counts[found.substr(0, found.find('='))];
  return counts;
}

TEST(CountNgrams, CountsTextsAndKeepsTheMostFrequentFirst) {
  const std::vector<std::string> texts = {"b a a", "a c", "a b", ""};
  const CountedNgrams all = count_ngrams(texts, rules_of("1", "0"), NgramKind::kWords);
  EXPECT_EQ(all.names.text(), "a\nb\nc\n");
  EXPECT_THAT(all.texts, ElementsAre(3, 2, 1));
  const CountedNgrams twice =
      count_ngrams(texts, rules_of("1", "0"), NgramKind::kWords, {.least_texts = 2});
  EXPECT_EQ(twice.names.text(), "a\nb\n");
  // b and c would both be kept, or of equally rare ones none.
  EXPECT_EQ(
      count_ngrams(texts, rules_of("1", "0"), NgramKind::kWords, {.most_kept = 1}).names.text(),
      "a\n");
}

TEST(CountNgrams, ForgetsTheRarestWhereThereIsNoRoom) {
  Draws draws(1);
  std::vector<std::string> texts;
  for (int i = 0; i < 300; ++i) {
    texts.push_back("usual often " + draw_words(draws, 5, 1'000'000'000));
  }
  const CountedNgrams all =
      count_ngrams(texts, rules_of("1", "0"), NgramKind::kWords, {.most_counted = 100});
  EXPECT_LE(all.names.size(), 100);
  ASSERT_GE(all.names.size(), 2);
  EXPECT_EQ(all.names.name(0), "usual");
  EXPECT_THAT(std::vector(all.texts.begin(), all.texts.begin() + 2), ElementsAre(300, 300));
}

TEST(CountRows, AreWhatANaiveCountSays) {
  const LabelledSample drawn = drawn_texts(600, 2, 3);
  const NgramRules rules = rules_of("1-3", "2-4");
  for (const NgramKind kind : {NgramKind::kWords, NgramKind::kCharacters}) {
    const CountedNgrams known = count_ngrams(drawn.texts, rules, kind, {.least_texts = 2});
    const SparseRows rows = count_rows(Context(2), drawn.texts, rules, kind, known.names);
    ASSERT_EQ(rows.rows(), 600);
    for (std::size_t i = 0; i < drawn.texts.size(); ++i) {
      std::map<std::string, int> counts = naive_counts(drawn.texts[i], rules, kind);
      std::erase_if(counts, [&](auto& count) { return known.names.find(count.first) < 0; });
      std::map<std::string, int> found;
      std::int32_t last = -1;
      for (index n = rows.starts[i]; n < rows.starts[i + 1]; ++n) {
        const std::int32_t column = rows.columns[static_cast<std::size_t>(n)];
        EXPECT_GT(column, std::exchange(last, column));
        found[std::string(known.names.name(column))] =
            static_cast<int>(rows.values[static_cast<std::size_t>(n)]);
      }
      EXPECT_EQ(found, counts);
    }
  }
}

// A text of 4 MB, of one character.
TEST(CountRows, TakeOneLongText) {
  const std::vector<std::string> texts = {std::string(1 << 22, 'a'), "a b"};
  const NgramRules rules = rules_of("1-2", "1-3");
  const CountedNgrams words = count_ngrams(texts, rules, NgramKind::kWords);
  EXPECT_EQ(words.names.size(), 3);  // a, a b, b: the long word has no name
  const CountedNgrams known = count_ngrams(texts, rules, NgramKind::kCharacters);
  const SparseRows rows = count_rows(Context(1), texts, rules, NgramKind::kCharacters, known.names);
  EXPECT_LE(rows.size(), 40);
}

}  // namespace
}  // namespace fovea
