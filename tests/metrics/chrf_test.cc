// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/metrics/ngram_metrics.h"
#include "tests/support/throws.h"

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
