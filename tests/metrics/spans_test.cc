// SPDX-License-Identifier: Apache-2.0
#include "fovea/metrics/spans.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <utility>

#include "fovea/base/random.h"
#include "tests/metrics/spans_golden.h"
#include "tests/support/draws.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

struct Kind {
  std::string_view letters;
  TagScheme scheme;
  SpanReading reading;
};
constexpr Kind kKinds[] = {{"OBI", TagScheme::kBio, SpanReading::kLenient},
                           {"OBIES", TagScheme::kBioes, SpanReading::kLenient},
                           {"OBI", TagScheme::kIob1, SpanReading::kStrict},
                           {"OBI", TagScheme::kBio, SpanReading::kStrict},
                           {"OBIES", TagScheme::kBioes, SpanReading::kStrict}};

std::vector<SentenceSpans> file_of(int seed, const Kind& kind) {
  Draws draws(static_cast<std::uint64_t>(seed));
  TagTypes types;
  for (const char* const name : {"x", "y", "z"}) types.number_of(name);
  const auto tag = [&] {
    std::string text(1,
                     kind.letters[static_cast<std::size_t>(draws.below(std::ssize(kind.letters)))]);
    const auto type = static_cast<std::size_t>(draws.below(3));
    if (text != "O") text += '-' + types.names()[type];
    return parse_tag(text, kind.scheme, types);
  };
  const index agreement = draws.below(100);
  std::vector<SentenceSpans> sentences(static_cast<std::size_t>(1 + draws.below(6)));
  for (SentenceSpans& sentence : sentences) {
    std::vector<ParsedTag> truth, predicted;
    sentence.tokens = 1 + draws.below(12);
    for (index n = 0; n < sentence.tokens; ++n) {
      truth.push_back(tag());
      const bool agrees = draws.below(100) < agreement;
      predicted.push_back(tag());
      if (agrees) predicted.back() = truth.back();
      sentence.right_tokens += truth.back() == predicted.back() ? 1 : 0;
    }
    sentence.truth = spans_of(truth, kind.scheme, kind.reading);
    sentence.predicted = spans_of(predicted, kind.scheme, kind.reading);
  }
  return sentences;
}

// Most of these 1,000 files break their scheme.
TEST(Spans, AreCountedAsByConllevalAndSeqeval) {
  for (std::size_t kind = 0; kind < std::size(kKinds); ++kind) {
    for (int first = 0; first < golden::kSpanFiles; first += golden::kFilesOfAHash) {
      std::uint64_t hash = 0xCBF29CE484222325u;
      const auto mix = [&](index number) {
        hash = (hash ^ static_cast<std::uint64_t>(number)) * 0x100000001B3u;
      };
      for (int seed = first; seed < first + golden::kFilesOfAHash; ++seed) {
        const SpanReport report = span_report(file_of(seed, kKinds[kind]), 3);
        for (std::size_t type = 0; type < 3; ++type) {
          mix(report.support[type]);
          mix(report.predicted[type]);
          mix(report.right[type]);
        }
      }
      EXPECT_EQ(hash, golden::kSpanHashes[kind][first / golden::kFilesOfAHash])
          << "kind " << kind << ", files from " << first;
    }
  }
}

TEST(Spans, HaveTheScoresOfSeqeval) {
  for (const golden::SpanCase& of : golden::kSpanCases) {
    const SpanReport r = span_report(file_of(of.seed, kKinds[of.kind]), 3);
    const double numbers[] = {r.accuracy,   r.micro.precision,    r.micro.recall,
                              r.micro.f1,   r.macro.precision,    r.macro.recall,
                              r.macro.f1,   r.weighted.precision, r.weighted.recall,
                              r.weighted.f1};
    ASSERT_EQ(std::size(numbers), of.numbers.size());
    for (std::size_t i = 0; i < of.numbers.size(); ++i) {
      EXPECT_NEAR(numbers[i], of.numbers[i], 1e-12) << of.kind << ' ' << of.seed << ' ' << i;
    }
  }
}

const SentenceSpans kFirst{.truth = {{0, 2, 0}, {3, 4, 1}},
                           .predicted = {{0, 2, 1}, {3, 4, 1}, {5, 6, 0}},
                           .tokens = 7,
                           .right_tokens = 4};
const SentenceSpans kSecond{.truth = {{1, 2, 0}}, .predicted = {}, .tokens = 3, .right_tokens = 2};
const SentenceSpans kRight{
    .truth = {{0, 1, 1}}, .predicted = {{0, 1, 1}}, .tokens = 1, .right_tokens = 1};

TEST(Spans, AreRightIfEndsAndTypeAre) {
  const SpanReport report = span_report(std::vector{kFirst, kSecond, kRight}, 2);
  EXPECT_EQ(report.sentences, 3);
  EXPECT_EQ(report.tokens, 11);
  EXPECT_DOUBLE_EQ(report.accuracy, 7 / 11.0);
  EXPECT_DOUBLE_EQ(report.exact, 1 / 3.0);
  EXPECT_DOUBLE_EQ(report.micro.precision, 2 / 4.0);
  EXPECT_DOUBLE_EQ(report.micro.recall, 2 / 4.0);
  EXPECT_THAT(report.support, testing::ElementsAre(2, 2));
  EXPECT_THAT(report.predicted, testing::ElementsAre(1, 3));
  EXPECT_THAT(report.right, testing::ElementsAre(0, 2));
}

TEST(Spans, OfWrongTypesAreTold) {
  const ConfusionMatrix confusion = type_confusion(std::vector{kFirst, kSecond, kRight}, 2);
  EXPECT_EQ(confusion.classes, 3);
  EXPECT_THAT(confusion.counts, testing::ElementsAre(0, 1, 1,  //
                                                     0, 2, 0,  //
                                                     1, 0, 0));
}

TEST(Spans, OfNoTypeGiveNoScores) {
  const SpanReport report = span_report(std::vector<SentenceSpans>{{}, {}}, 0);
  EXPECT_EQ(report.micro.f1, 0);
  EXPECT_EQ(report.exact, 1);
  EXPECT_TRUE(std::isnan(report.accuracy));
}

TEST(SpanIntervals, AreOfSentencesAndHaveTheSameBitsForAnyNumberOfThreads) {
  std::vector<SentenceSpans> sentences;
  for (int i = 0; i < 60; ++i)
    sentences.push_back(i % 3 == 0 ? kFirst : i % 3 == 1 ? kSecond : kRight);
  const BootstrapOptions options{.resamples = 200, .seed = 3};
  const SpanIntervals one = span_intervals(Context(1), sentences, 2, options);
  const SpanReport report = span_report(sentences, 2);
  EXPECT_EQ(one.micro.f1.value, report.micro.f1);
  EXPECT_LT(one.micro.f1.low, report.micro.f1);
  EXPECT_GT(one.micro.f1.high, report.micro.f1);
  EXPECT_EQ(one.support, report.support);
  EXPECT_EQ(one.sentences, 60);
  for (const int threads : {2, 3, 8}) {
    const SpanIntervals many = span_intervals(Context(threads), sentences, 2, options);
    EXPECT_EQ(many.macro.f1.low, one.macro.f1.low);
    EXPECT_EQ(many.types[1].recall.high, one.types[1].recall.high);
  }
}

TEST(Spans, WhatDoesNotFitIsNamed) {
  EXPECT_THROWS(span_report({}, 1), kShape, "there are no sentences");
  EXPECT_THROWS(span_report(std::vector{kFirst}, 1), kShape,
                "sentence 0: the type 1 of a true span is not one of the 1 types");
  SentenceSpans bad{.truth = {{0, 2, 0}, {1, 3, 0}}};
  EXPECT_THROWS(span_report(std::vector{kFirst, bad}, 2), kShape,
                "sentence 1: the true span from 1 to 3 is out of order");
  EXPECT_THROWS(type_confusion(std::vector{bad}, 2), kShape, "sentence 0");
  bad = {.tokens = 1, .right_tokens = 2};
  EXPECT_THROWS(span_report(std::vector{bad}, 2), kShape, "2 of 1 tokens are right");
}

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
