// SPDX-License-Identifier: Apache-2.0
// What all scores of translations have alike; translation_golden_test.cc compares the numbers with
// sacreBLEU's.
#include "fovea/metrics/translation.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fovea
