// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/ter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/base/random.h"

namespace fovea {
namespace {

std::vector<double> count(std::string_view hypothesis, std::vector<std::string_view> references) {
  std::vector<double> numbers(2);
  ter()->count(hypothesis, references, numbers);
  return numbers;
}

// Snover and others 2006, section 2: two shifts (one of "this week", by tercom's search one edit),
// one substitution, one insertion.
TEST(Ter, IsThatOfTheExampleOfThePaper) {
  const std::vector<double> numbers =
      count("THIS WEEK THE SAUDIS denied information published in the new york times",
            {"SAUDI ARABIA denied THIS WEEK information published in the AMERICAN new york times"});
  EXPECT_EQ(numbers, (std::vector<double>{4, 13}));
  EXPECT_NEAR(ter()->score(numbers), 100 * 4.0 / 13, 1e-12);
}

TEST(Ter, TakesTheFewestEditsAndTheMeanLength) {
  EXPECT_EQ(count("a b c", {"a b c d e", "a b"}), (std::vector<double>{1, 3.5}));
  EXPECT_EQ(count("The Cat", {"the cat"}), (std::vector<double>{0, 2}));
}

TEST(Ter, OfEmptyReferencesIs100Or0) {
  const std::vector<double> something = count("a b", {""}), nothing = count("", {""});
  EXPECT_EQ(ter()->score(something), 100);
  EXPECT_EQ(ter()->score(nothing), 0);
  EXPECT_EQ(count("", {"a b"}), (std::vector<double>{2, 2}));
}

}  // namespace
}  // namespace fovea

namespace fovea::detail {
namespace {

std::u32string some_words(Random& random, index most, index kinds) {
  std::u32string words;
  for (index left = 1 + random.below(most); left > 0; --left) {
    words += static_cast<char32_t>(random.below(kinds));
  }
  return words;
}

// Levenshtein's, with the whole table.
index plain_distance(const std::u32string& a, const std::u32string& b) {
  std::vector<index> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<index>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    index above = row[0];
    row[0] = static_cast<index>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const index changed = above + (a[i - 1] == b[j - 1] ? 0 : 1);
      above = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

// One object for all orders of the words, so that rows are used again.
TEST(EditDistance, IsLevenshteinsInAnyOrderOfCalls) {
  Random random(1, RandomUse::kTest);
  for (int problem = 0; problem < 200; ++problem) {
    std::u32string a = some_words(random, 12, 4);
    const std::u32string b = some_words(random, 12, 4);
    EditDistance distance(a.size(), b);
    for (int order = 0; order < 6; ++order) {
      EXPECT_EQ(distance.of(a), plain_distance(a, b));
      index cost = 0, i = 0, j = 0;
      for (const Edit edit : distance.edits()) {
        if (edit == Edit::kNone) {
          EXPECT_EQ(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(j)]);
        }
        cost += edit == Edit::kNone ? 0 : 1;
        i += edit == Edit::kInsert ? 0 : 1;
        j += edit == Edit::kDelete ? 0 : 1;
      }
      EXPECT_EQ(cost, plain_distance(a, b));
      EXPECT_EQ(i, static_cast<index>(a.size()));
      EXPECT_EQ(j, static_cast<index>(b.size()));
      std::rotate(a.begin(), a.begin() + random.below(static_cast<index>(a.size())), a.end());
    }
  }
}

TEST(ShiftedEdits, AShiftIsOneEdit) {
  EXPECT_EQ(shifted_edits(U"abcdef", U"efabcd"), 1);
  EXPECT_EQ(shifted_edits(U"abcdef", U"abcdef"), 0);
  EXPECT_EQ(shifted_edits(U"", U"abc"), 3);
  EXPECT_EQ(shifted_edits(U"abc", U""), 3);
  EXPECT_EQ(shifted_edits(U"", U""), 0);
}

TEST(ShiftedEdits, AreNoMoreThanWithoutShifts) {
  Random random(2, RandomUse::kTest);
  index fewer = 0;
  for (int problem = 0; problem < 200; ++problem) {
    const std::u32string a = some_words(random, 15, 5), b = some_words(random, 15, 5);
    const index plain = plain_distance(a, b), edits = shifted_edits(a, b);
    EXPECT_LE(edits, plain);
    EXPECT_GE(edits,
              static_cast<index>(std::max(a.size(), b.size()) - std::min(a.size(), b.size())));
    fewer += edits < plain ? 1 : 0;
  }
  EXPECT_GT(fewer, 20);
}

// The band of 25 words follows the diagonal, however unlike the lengths are.
TEST(ShiftedEdits, LengthsMayDifferByAnything) {
  const std::u32string one = U"a", many(400, U'b');
  EXPECT_EQ(shifted_edits(one, many), 400);
  EXPECT_EQ(shifted_edits(many, one), 400);
}

}  // namespace
}  // namespace fovea::detail
