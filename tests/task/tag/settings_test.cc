// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/settings.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/support/throws.h"

namespace fovea {
namespace {

void check(const std::function<void(TaggerSettings&)>& change, TagTask task = TagTask::kTag) {
  TaggerSettings settings(task);
  change(settings);
  check_options(settings);
}

TEST(TaggerSettings, DefaultsAreAllowed) {
  check([](TaggerSettings&) {});
  check([](TaggerSettings&) {}, TagTask::kSegment);
  check([](TaggerSettings& s) { s.text.table.format = TaggedFormat::kWords; }, TagTask::kSegment);
}

TEST(TaggerSettings, ALinearTaggerReadsCharactersAndASegmenterNever) {
  for (const TagTask task : {TagTask::kTag, TagTask::kSegment}) {
    TaggerSettings settings(task);
    settings.model.character_reader = CharacterReader::kNone;
    settings.model.linear = false;
    EXPECT_FALSE(reads_characters(settings));
    settings.model.linear = true;
    EXPECT_EQ(reads_characters(settings), task == TagTask::kTag);
  }
}

TEST(TaggerSettings, WhatDoesNotFitTogetherIsNamed) {
  EXPECT_THROWS(check([](TaggerSettings& s) { s.text.table.format = TaggedFormat::kWords; }),
                kOptionValue, "--format words");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.text.joint = true; }), kOptionValue, "--joint");
  EXPECT_THROWS(
      check([](TaggerSettings& s) { s.text.scheme = {SchemeChoice::kBio}; }, TagTask::kSegment),
      kOptionValue, "--scheme, --task segment");
  EXPECT_THROWS(check([](TaggerSettings& s) {
                  s.text.scheme = {SchemeChoice::kNone};
                  s.text.metric = TaggerMetric::kSpanF1;
                }),
                kOptionValue, "--metric span-f1");
  EXPECT_THROWS(check(
                    [](TaggerSettings& s) {
                      s.text.table.tag_column = {2, 3};
                    },
                    TagTask::kSegment),
                kOptionValue, "a segmenter learns one column at most");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.model.freeze_embeddings = true; }), kOptionValue,
                "--freeze-embeddings");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.model.buckets = 5; }), kOptionValue,
                "--buckets 5: has no effect without --ngram-width");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.model.linear_buckets = 5; }), kOptionValue,
                "--linear-buckets 5: has no effect without --linear");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.text.word_dropout = 1.5; }), kOptionValue,
                "--word-dropout");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.text.max_length = 0; }), kOptionValue,
                "--max-length");
  EXPECT_THROWS(check([](TaggerSettings& s) { s.text.train = {"\xFF"}; }), kOptionValue, "--train");
}

TEST(TaggerSettings, SubwordsNeedAModelAndWhatReadsThem) {
  const auto subwords = [](TaggerSettings& s) {
    s.text.tokenizer = WordCut::kSubwords;
    s.text.tokenizer_model = "a.model";
  };
  check(subwords);
  const auto fails = [&](const char* words, const std::function<void(TaggerSettings&)>& change,
                         TagTask task = TagTask::kTag) {
    EXPECT_THROWS(check(
                      [&](TaggerSettings& s) {
                        subwords(s);
                        change(s);
                      },
                      task),
                  kOptionValue, words);
  };
  fails(
      "a segmenter reads characters", [](TaggerSettings&) {}, TagTask::kSegment);
  fails("has no effect with --character-reader none",
        [](TaggerSettings& s) { s.model.character_reader = CharacterReader::kNone; });
  fails("needs --tokenizer-model", [](TaggerSettings& s) { s.text.tokenizer_model = ""; });
  fails("--tokenizer-model a.model: has no effect without",
        [](TaggerSettings& s) { s.text.tokenizer = WordCut::kCharacters; });
  fails("--subword-sampling", [](TaggerSettings& s) { s.text.subword_sampling = 2; });
}

}  // namespace
}  // namespace fovea
