// SPDX-License-Identifier: Apache-2.0
// The tokens of BLEU are those that sacreBLEU 2.6.0 makes; translation_test.cc compares scores.
#include "fovea/metrics/ngram_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fovea/metrics/translation.h"
#include "fovea/text/python_text.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

// Papineni and others 2002, example 2: a word counts no more often than in a reference.
TEST(Bleu, ClipsCounts) {
  const std::vector<std::string_view> references{"The cat is on the mat.",
                                                 "There is a cat on the mat."};
  std::vector<double> numbers(10);
  bleu()->count("the the the the the the the", references, numbers);
  EXPECT_EQ(numbers, (std::vector<double>{7, 7, 1, 0, 0, 0, 7, 6, 5, 4}));
}

TEST(Bleu, IsTheBrevityTimesTheGeometricMean) {
  const std::vector<double> sums{18, 20, 12, 8, 4, 2, 18, 16, 14, 12};
  const BleuScore score = bleu_score(sums);
  EXPECT_DOUBLE_EQ(score.brevity, std::exp(1 - 20.0 / 18));
  EXPECT_DOUBLE_EQ(score.precisions[3], 100 * 2.0 / 12);
  EXPECT_NEAR(score.score,
              100 * score.brevity * std::pow(12.0 / 18 * 8 / 16 * 4 / 14 * 2 / 12, 0.25), 1e-12);
  EXPECT_EQ(score.details(),
            "66.7/50.0/28.6/16.7 (BP = 0.895 ratio = 0.900 hyp_len = 18 ref_len = 20)");
}

TEST(Bleu, OrdersWithoutMatchesAreSmoothed) {
  const std::vector<double> sums{9, 9, 3, 1, 0, 0, 9, 8, 7, 6};
  const BleuScore score = bleu_score(sums);
  EXPECT_DOUBLE_EQ(score.precisions[2], 100 / (2 * 7.0));
  EXPECT_DOUBLE_EQ(score.precisions[3], 100 / (4 * 6.0));
}

// A corpus of sentences of two words has no 3-grams: its score is 0, that of a sentence is not.
TEST(Bleu, ShortSentencesHaveFewerOrders) {
  const std::vector<double> sums{2, 2, 2, 1, 0, 0, 2, 1, 0, 0};
  EXPECT_EQ(bleu_score(sums).score, 0);
  EXPECT_NEAR(bleu_score(sums, BleuOrder::kEffective).score, 100, 1e-12);
  const std::vector<double> nothing{0, 5, 0, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(bleu_score(nothing).score, 0);
  EXPECT_EQ(bleu_score(nothing).brevity, 0);
}

// The shorter one counts of two lengths that are equally near.
TEST(Bleu, TakesTheNearestReferenceLength) {
  std::vector<double> numbers(10);
  const std::vector<std::string_view> references{"a b c d e", "a b c", "a"};
  bleu({.tokens = BleuTokens::kNone})->count("a b c d", references, numbers);
  EXPECT_EQ(numbers[1], 3);
}

std::string tokens(std::string_view text, BleuTokens kind) {
  return joined(python_words(bleu_tokens(text, kind)));
}

TEST(BleuTokens, PunctuationStandsAlone) {
  EXPECT_EQ(tokens("Hello, world! (It's 1,000.50-ish.)", BleuTokens::k13a),
            "Hello , world ! ( It's 1,000.50 - ish . )");
  EXPECT_EQ(tokens("well-known 3-4 a.b 1.", BleuTokens::k13a), "well-known 3 - 4 a . b 1 .");
  EXPECT_EQ(tokens("...", BleuTokens::k13a), ". . .");
  EXPECT_EQ(tokens("a/b|c{d}", BleuTokens::k13a), "a / b | c { d }");
}

TEST(BleuTokens, EntitiesAreReadOnceEach) {
  EXPECT_EQ(tokens("&quot;a&quot; &amp;lt; <skipped>b&gt;", BleuTokens::k13a), "\" a \" < b >");
  EXPECT_EQ(tokens("so-\ncalled", BleuTokens::k13a), "socalled");
  EXPECT_EQ(tokens("&quot;", BleuTokens::kZh), "& quot ;");  // zh leaves them
}

TEST(BleuTokens, ChineseCharactersStandAlone) {
  EXPECT_EQ(tokens("今天，很好。OK 2020", BleuTokens::kZh), "今 天 ， 很 好 。 OK 2020");
  EXPECT_EQ(tokens("“so”…", BleuTokens::kZh), "“ so ” …");  // U+2001 to U+2A6D count, too
  EXPECT_EQ(tokens("한국어é🙂", BleuTokens::kZh), "한국어é🙂");
  EXPECT_EQ(tokens("今天", BleuTokens::k13a), "今天");
}

TEST(BleuTokens, CharactersAndNothing) {
  EXPECT_EQ(tokens("ab 月🙂", BleuTokens::kChar), "a b 月 🙂");
  EXPECT_EQ(tokens("a,b  c.", BleuTokens::kNone), "a,b c.");
  for (const auto kind :
       {BleuTokens::k13a, BleuTokens::kZh, BleuTokens::kChar, BleuTokens::kNone}) {
    EXPECT_EQ(tokens("  \n", kind), "");
  }
}

}  // namespace
}  // namespace fovea

namespace fovea::detail {
namespace {

TEST(Ngrams, AreCounted) {
  const std::u32string units = U"abab";
  EXPECT_THAT(ngrams_of(units, 1), UnorderedElementsAre(Pair(U"a", 2), Pair(U"b", 2)));
  EXPECT_THAT(ngrams_of(units, 2), UnorderedElementsAre(Pair(U"ab", 2), Pair(U"ba", 1)));
  EXPECT_THAT(ngrams_of(units, 4), UnorderedElementsAre(Pair(U"abab", 1)));
  EXPECT_TRUE(ngrams_of(units, 5).empty());
  EXPECT_EQ(ngram_count(4, 2), 3);
  EXPECT_EQ(ngram_count(4, 5), 0);
}

TEST(Ngrams, SharedOnesAreTheSmallerCounts) {
  const std::u32string a = U"aaab", b = U"aabb", c = U"c";
  EXPECT_EQ(count_shared(ngrams_of(a, 1), ngrams_of(b, 1)), 3);
  EXPECT_EQ(count_shared(ngrams_of(a, 2), ngrams_of(b, 2)), 2);
  EXPECT_EQ(count_shared(ngrams_of(a, 1), ngrams_of(c, 1)), 0);
  Ngrams both = ngrams_of(a, 1);
  take_larger(both, ngrams_of(b, 1));
  take_larger(both, ngrams_of(c, 1));
  EXPECT_THAT(both, UnorderedElementsAre(Pair(U"a", 3), Pair(U"b", 2), Pair(U"c", 1)));
}

TEST(Ngrams, EqualWordsHaveEqualNumbers) {
  WordNumbers numbers;
  const std::vector<std::string_view> first{"a", "b", "a"}, second{"c", "b"};
  const std::u32string one = numbers.of(first), two = numbers.of(second);
  EXPECT_EQ(one[0], one[2]);
  EXPECT_NE(one[0], one[1]);
  EXPECT_EQ(two[1], one[1]);
  EXPECT_NE(two[0], one[0]);
}

}  // namespace
}  // namespace fovea::detail

namespace fovea {
namespace {

std::vector<double> count(const TranslationMetric& metric, std::string_view hypothesis,
                          std::vector<std::string_view> references) {
  std::vector<double> numbers(static_cast<std::size_t>(metric.counts()));
  metric.count(hypothesis, references, numbers);
  return numbers;
}

TEST(Chrf, CountsCharactersWithoutSpace) {
  const auto metric = chrf();
  const std::vector<double> numbers = count(*metric, "ab c", {"abd"});
  EXPECT_EQ(numbers, (std::vector<double>{3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  // Orders 1 to 3, in which both have n-grams: precision and recall (2/3 + 1/2 + 0) / 3.
  EXPECT_NEAR(metric->score(numbers), 100 * (2.0 / 3 + 0.5) / 3, 1e-12);
}

TEST(Chrf, RecallCountsMore) {
  const auto metric = chrf();
  const auto score = [&](std::string_view hypothesis, std::string_view reference) {
    const std::vector<double> numbers = count(*metric, hypothesis, {reference});
    return metric->score(numbers);
  };
  EXPECT_GT(score("abcdefabcdef", "abcdef"), score("abc", "abcdef"));
  EXPECT_NEAR(score("a b c", "abc"), 100, 1e-12);
  EXPECT_EQ(score("xyz", "abc"), 0);
  EXPECT_EQ(score("", ""), 0);
}

TEST(Chrf, TakesTheBestReference) {
  const auto metric = chrf();
  EXPECT_EQ(count(*metric, "abc", {"xyz", "abd"}), count(*metric, "abc", {"abd"}));
}

// "(yes)" is "(yes" and ")", but "(yes" is "(" and "yes": one mark is parted, rather the last one.
TEST(Chrf, WordsLoseOneMark) {
  const auto metric = chrf({.word_order = 2});
  EXPECT_EQ(metric->name(), "chrF2++");
  const std::vector<double> numbers = count(*metric, "(yes) .x", {"(yes ) . x"});
  EXPECT_EQ(std::vector<double>(numbers.begin() + 18, numbers.end()),
            (std::vector<double>{4, 5, 3, 3, 4, 2}));
  EXPECT_THROWS(chrf({.word_order = -1}), kOptionValue, "word-order");
}

}  // namespace
}  // namespace fovea
