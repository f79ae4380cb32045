// SPDX-License-Identifier: Apache-2.0
// BLEU, chrF and TER of random sentences against sacreBLEU, and how all of them are called.
#include "fovea/metrics/translation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "fovea/metrics/ngram_metrics.h"
#include "fovea/metrics/ter.h"
#include "tests/metrics/translation_golden.h"
#include "tests/support/draws.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::vector<std::string> kReference{"the cat sat on the mat", "a dog is here", "",
                                          "yes, it is."};
const std::vector<std::string> kHypothesis{"the cat sat on a mat", "here is a dog", "",
                                           "yes it is."};

TEST(Translation, PerfectIsTheBestOfEachMetric) {
  for (const TranslationMetricKind& kind : translation_metrics()) {
    const auto metric = kind.make({});
    const TranslationCounts counts(Context(1), *metric, {kReference, {kReference}});
    EXPECT_NEAR(corpus_score(*metric, counts), metric->larger_is_better() ? 100 : 0, 1e-12);
    const TranslationCounts worse(Context(1), *metric, {kHypothesis, {kReference}});
    const double score = corpus_score(*metric, worse);
    EXPECT_TRUE(metric->larger_is_better() ? score < 100 : score > 0) << kind.name;
  }
}

TEST(Translation, CountsDoNotDependOnThreads) {
  std::vector<std::string> hypotheses, references;
  for (int i = 0; i < 40; ++i) {
    hypotheses.insert(hypotheses.end(), kHypothesis.begin(), kHypothesis.end());
    references.insert(references.end(), kReference.begin(), kReference.end());
  }
  for (const TranslationMetricKind& kind : translation_metrics()) {
    const auto metric = kind.make({});
    const TranslationCounts one(Context(1), *metric, {hypotheses, {references}});
    const TranslationCounts three(Context(3), *metric, {hypotheses, {references}});
    EXPECT_EQ(one.sums(), three.sums());
    const auto test = [&](int threads) {
      return paired_bootstrap(Context(threads), *metric, one, three, {.resamples = 50}).system.mean;
    };
    EXPECT_EQ(test(1), test(3));
  }
}

TEST(Translation, ASystemDoesNotDifferFromItself) {
  const auto metric = translation_metrics().front().make({});
  const TranslationCounts counts(Context(1), *metric, {kHypothesis, {kReference}});
  const PairedBootstrap found = paired_bootstrap(Context(1), *metric, counts, counts);
  EXPECT_EQ(found.difference.value, 0);
  EXPECT_EQ(found.difference.low, 0);
  EXPECT_NEAR(found.p_value, 1 / 1001.0, 1e-12);  // as sacreBLEU says: no resample lies above 0
}

TEST(Translation, RefusesWhatDoesNotFit) {
  const auto metric = translation_metrics().front().make({});
  const std::vector<std::string> one{"a"}, invalid{"a", "b", "c", "\xFF"};
  const auto counts = [&](const Translations& of) { TranslationCounts(Context(1), *metric, of); };
  EXPECT_THROWS(counts({{}, {{}}}), kShape, "no sentences");
  EXPECT_THROWS(counts({kReference, {}}), kShape, "no references");
  EXPECT_THROWS(counts({kReference, {one}}), kShape, "4 hypotheses, 1 references");
  EXPECT_THROWS(counts({invalid, {kReference}}), kEncoding, "hypothesis 4:1:1");
  const TranslationCounts four(Context(1), *metric, {kReference, {kReference}});
  const TranslationCounts single(Context(1), *metric, {one, {one}});
  EXPECT_THROWS(paired_bootstrap(Context(1), *metric, four, single), kShape,
                "4 sentences of the baseline, 1 of the system");
}

using Words = std::vector<std::string_view>;

std::string_view some_word(Draws& draws) {
  return golden::kWords[draws.below(std::ssize(golden::kWords))];
}

// make_translation_golden.py: changed().
Words changed(Draws& draws, const Words& words) {
  Words out;
  for (const std::string_view word : words) {
    const index what = draws.below(10);
    if (what == 0) continue;
    out.push_back(what == 1 ? some_word(draws) : word);
    if (what == 2) out.push_back(some_word(draws));
  }
  if (out.size() > 3 && draws.below(2) == 0) {
    const auto begin = out.begin() + draws.below(std::ssize(out));
    const auto end = begin + std::min<std::ptrdiff_t>(1 + draws.below(4), out.end() - begin);
    const Words run(begin, end);
    out.erase(begin, end);
    out.insert(out.begin() + draws.below(std::ssize(out) + 1), run.begin(), run.end());
  }
  return out;
}

std::string text_of(const Words& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i > 0 ? " " : "";
    text += words[i];
  }
  return text;
}

// [systems][sentences]
std::vector<std::vector<std::string>> corpus(int seed, int sentences, int longest, int systems) {
  Draws draws(static_cast<std::uint64_t>(seed));
  std::vector<std::vector<std::string>> lists(static_cast<std::size_t>(systems));
  for (int n = 0; n < sentences; ++n) {
    Words words;
    for (index left = draws.below(longest + 1); left > 0; --left) words.push_back(some_word(draws));
    lists[0].push_back(text_of(words));
    for (std::size_t s = 1; s < lists.size(); ++s) {
      lists[s].push_back(text_of(changed(draws, words)));
    }
  }
  return lists;
}

std::unique_ptr<TranslationMetric> metric_of(std::string_view name) {
  if (name == "chrf") return chrf();
  if (name == "chrf++") return chrf({.word_order = 2});
  if (name == "ter") return ter();
  return bleu({.tokens = enum_from_name<BleuTokens>(name.substr(5))});
}

TEST(TranslationGolden, ScoresAreThoseOfSacreBleu) {
  for (const golden::TranslationCase& of : golden::kTranslationCases) {
    SCOPED_TRACE(testing::Message() << of.metric << ", seed " << of.seed);
    const auto lists = corpus(of.seed, of.sentences, of.longest, 1 + of.references);
    const auto metric = metric_of(of.metric);
    Translations translations{.hypotheses = lists.back()};
    translations.references.assign(lists.begin(), lists.end() - 1);
    const TranslationCounts counts(Context(2), *metric, translations);
    EXPECT_NEAR(corpus_score(*metric, counts), of.score, 1e-9);
    EXPECT_EQ(metric->signature(of.references), of.signature);
    const std::vector<double> each = sentence_scores(*metric, counts);
    for (std::size_t n = 0; n < of.sentence_scores.size(); ++n) {
      EXPECT_NEAR(each[n], of.sentence_scores[n], 1e-9) << "sentence " << n;
    }
  }
}

// Other draws of as many resamples: means and half widths agree to their errors, and p to its own,
// which is about sqrt(p / 20000).
TEST(TranslationGolden, PairedBootstrapIsThatOfSacreBleu) {
  auto lists = corpus(11, 50, 20, 3);
  for (std::size_t n = 0; n < lists[2].size(); n += 7) lists[2][n] = lists[0][n];
  for (const golden::PairedCase& of : golden::kPairedCases) {
    SCOPED_TRACE(of.metric);
    const auto metric = metric_of(of.metric);
    const TranslationCounts baseline(Context(2), *metric, {lists[1], {lists[0]}});
    const TranslationCounts system(Context(2), *metric, {lists[2], {lists[0]}});
    const PairedBootstrap found =
        paired_bootstrap(Context(2), *metric, baseline, system, {.resamples = 20000, .seed = 3});
    const ResampledScore* const scores[] = {&found.baseline, &found.system};
    for (int s = 0; s < 2; ++s) {
      const double* wanted = of.numbers + 3 * s;
      EXPECT_NEAR(scores[s]->score, wanted[0], 1e-9);
      EXPECT_NEAR(scores[s]->mean, wanted[1], 0.1);
      EXPECT_NEAR(scores[s]->half_width, wanted[2], 0.03 * wanted[2]);
    }
    EXPECT_NEAR(found.p_value, of.numbers[6], 5 * std::sqrt(2 * of.numbers[6] / 20000));
    EXPECT_EQ(found.difference.value, found.system.score - found.baseline.score);
    EXPECT_LT(found.difference.low, found.difference.value);
    EXPECT_GT(found.difference.high, found.difference.value);
  }
}

}  // namespace
}  // namespace fovea
