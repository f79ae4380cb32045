// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fovea/task/translate/line_translator.h"
#include "tests/support/throws.h"
#include "tests/task/translate/tiny.h"

namespace fovea {
namespace {

SentencePairs pairs_of(std::vector<std::string> source, std::vector<std::string> target) {
  return {.source = std::move(source), .target = std::move(target)};
}

TEST(EvaluateTranslator, CountsWhatItCanRead) {
  const LoadedTranslator loaded = untrained_translator();
  const TranslatorScore score =
      evaluate_translator(Context(2), loaded,
                          pairs_of({"abc", "", "a", std::string(30, 'a'), " \t", "b"},
                                   {"uv", "u", "vwx", "u", "v", std::string(24, 'w')}));
  EXPECT_EQ(score.pairs, 2);
  EXPECT_EQ(score.empty, 2);
  EXPECT_EQ(score.too_long, 2);
  EXPECT_EQ(score.tokens, 3 + 4);
  ASSERT_EQ(score.scores.size(), 6u);
  EXPECT_EQ(score.scores[0].tokens, 3);
  EXPECT_EQ(score.scores[1].tokens, 0);
  EXPECT_EQ(score.scores[3].tokens, 0);
  EXPECT_NEAR(-score.scores[0].log_probability - score.scores[2].log_probability, 7 * score.loss,
              1e-9);
  EXPECT_DOUBLE_EQ(score.perplexity, std::exp(score.loss));
  EXPECT_THROWS(evaluate_translator(Context(1), loaded, pairs_of({""}, {"a"})), kInputTooSmall,
                "no pair");
}

// What a search says of its translations is what forced decoding says of them.
TEST(EvaluateTranslator, ForcedScoresAreThoseOfTheSearch) {
  const LoadedTranslator loaded = untrained_translator();
  TranslationOptions options;
  options.search.nbest = 3;
  LineTranslator translator(Context(2), *loaded.model, loaded.vocabulary, options, "test");
  const std::vector<std::string> lines = {"abc", "fedcba", "aa bb cc"};
  for (std::size_t n = 0; n < lines.size(); ++n) translator.add({lines[n], n + 1});
  const auto found = translator.translate();
  SentencePairs pairs;
  std::vector<double> expected;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    for (const TranslatedText& made : found[n]) {
      if (made.text.empty()) continue;
      pairs.source.push_back(lines[n]);
      pairs.target.push_back(made.text);
      expected.push_back(made.log_probability);
    }
  }
  ASSERT_GE(expected.size(), 6u);
  const TranslatorScore score = evaluate_translator(Context(1), loaded, pairs);
  for (std::size_t n = 0; n < expected.size(); ++n) {
    EXPECT_NEAR(score.scores[n].log_probability, expected[n], 1e-5 * std::abs(expected[n]));
  }
}

}  // namespace
}  // namespace fovea
