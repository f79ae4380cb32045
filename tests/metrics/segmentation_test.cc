// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <utility>

#include "fovea/base/random.h"
#include "fovea/metrics/spans.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

SegmentedSentence random_sentence(Random& random) {
  SegmentedSentence s;
  const auto length = static_cast<index>(random.uniform(1, 30));
  for (index end = 1; end <= length; ++end) {
    if (end == length || random.uniform(0, 1) < .5) {
      s.truth.push_back(end);
      s.unknown.push_back(random.uniform(0, 1) < .2);
    }
    if (end == length || random.uniform(0, 1) < .5) s.predicted.push_back(end);
  }
  return s;
}

std::set<std::pair<index, index>> words_of(const std::vector<index>& ends) {
  std::set<std::pair<index, index>> words;
  index begin = 0;
  for (const index end : ends) words.emplace(std::exchange(begin, end), end);
  return words;
}

TEST(Segmentation, CountsWordsWithBothEndsRight) {
  Random random(1, RandomUse::kTest);
  std::vector<SegmentedSentence> sentences;
  double right = 0, truth = 0, predicted = 0, unknown = 0, unknown_right = 0;
  for (int i = 0; i < 200; ++i) {
    const SegmentedSentence& s = sentences.emplace_back(random_sentence(random));
    const auto words = words_of(s.truth), found = words_of(s.predicted);
    truth += static_cast<double>(words.size());
    predicted += static_cast<double>(found.size());
    std::size_t at = 0;
    for (const auto& word : words) {
      const bool is_right = found.count(word) == 1, is_unknown = s.unknown[at++] != 0;
      right += is_right;
      unknown += is_unknown;
      unknown_right += is_unknown && is_right;
    }
  }
  const SegmentationReport r = segmentation_report(sentences);
  EXPECT_EQ(r.sentences, 200);
  EXPECT_EQ(static_cast<double>(r.words), truth);
  EXPECT_EQ(static_cast<double>(r.predicted), predicted);
  EXPECT_EQ(static_cast<double>(r.unknown), unknown);
  EXPECT_DOUBLE_EQ(r.words_found.precision, right / predicted);
  EXPECT_DOUBLE_EQ(r.words_found.recall, right / truth);
  EXPECT_DOUBLE_EQ(r.words_found.f1, 2 * right / (truth + predicted));
  EXPECT_DOUBLE_EQ(r.unknown_recall, unknown_right / unknown);
  EXPECT_DOUBLE_EQ(r.known_recall, (right - unknown_right) / (truth - unknown));
}

// 共同 创造 美好 的 新 世纪, cut as 共同 创 造 美好 的新 世纪: 3 of 6 true words, of 6 predicted.
TEST(Segmentation, OfASentenceByHand) {
  const SegmentedSentence s{.truth = {2, 4, 6, 7, 8, 10},
                            .predicted = {2, 3, 4, 6, 8, 10},
                            .unknown = {0, 1, 0, 0, 0, 1}};
  const SegmentationReport r = segmentation_report(std::vector{s});
  EXPECT_DOUBLE_EQ(r.words_found.precision, .5);
  EXPECT_DOUBLE_EQ(r.words_found.recall, .5);
  EXPECT_DOUBLE_EQ(r.unknown_recall, .5);
  EXPECT_DOUBLE_EQ(r.known_recall, .5);
}

TEST(Segmentation, WithoutFlagsNoWordIsUnknown) {
  const SegmentedSentence s{.truth = {1, 2}, .predicted = {1, 2}};
  const SegmentationReport r = segmentation_report(std::vector{s, SegmentedSentence{}});
  EXPECT_EQ(r.words_found.f1, 1);
  EXPECT_EQ(r.known_recall, 1);
  EXPECT_TRUE(std::isnan(r.unknown_recall));
}

TEST(SegmentationIntervals, AreOfSentencesAndHaveTheSameBitsForAnyNumberOfThreads) {
  Random random(2, RandomUse::kTest);
  std::vector<SegmentedSentence> sentences;
  for (int i = 0; i < 80; ++i) sentences.push_back(random_sentence(random));
  const BootstrapOptions options{.resamples = 200, .seed = 3};
  const SegmentationIntervals one = segmentation_intervals(Context(1), sentences, options);
  EXPECT_EQ(one.words_found.f1.value, segmentation_report(sentences).words_found.f1);
  EXPECT_LT(one.words_found.f1.low, one.words_found.f1.value);
  EXPECT_GT(one.words_found.f1.high, one.words_found.f1.value);
  const SegmentationIntervals many = segmentation_intervals(Context(3), sentences, options);
  EXPECT_EQ(many.words_found.f1.low, one.words_found.f1.low);
  EXPECT_EQ(many.unknown_recall.high, one.unknown_recall.high);
}

TEST(Segmentation, WhatDoesNotFitIsNamed) {
  const auto report = [](const SegmentedSentence& s) {
    return segmentation_report(std::vector{s});
  };
  EXPECT_THROWS(segmentation_report({}), kShape, "there are no sentences");
  EXPECT_THROWS(report({.truth = {2, 2}, .predicted = {2}}), kShape,
                "sentence 0: a true word ends at 2, after one at 2");
  EXPECT_THROWS(report({.truth = {2}, .predicted = {3}}), kShape,
                "sentence 0 has 2 characters, but 3 as it was predicted");
  EXPECT_THROWS(report({.truth = {2}, .predicted = {2}, .unknown = {0, 1}}), kShape,
                "1 words and 2 flags");
}

}  // namespace
}  // namespace fovea
