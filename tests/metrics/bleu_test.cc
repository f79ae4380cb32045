// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/metrics/ngram_metrics.h"

namespace fovea {
namespace {

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

// Of two lengths that are equally near the shorter one counts.
TEST(Bleu, TakesTheNearestReferenceLength) {
  std::vector<double> numbers(10);
  const std::vector<std::string_view> references{"a b c d e", "a b c", "a"};
  bleu({.tokens = BleuTokens::kNone})->count("a b c d", references, numbers);
  EXPECT_EQ(numbers[1], 3);
}

}  // namespace
}  // namespace fovea
