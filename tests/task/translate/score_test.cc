// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/base/file.h"
#include "fovea/task/translate/evaluate.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

const std::vector<std::string> kReference{"the cat sat on the mat", "a dog is here"};
const std::vector<std::string> kHypothesis{"the cat sat on a mat", "here is a dog"};

TranslationScore score(const TranslationScoreOptions& options,
                       const std::vector<std::string>* baseline = nullptr) {
  return score_translations(Context(1), {kHypothesis, {kReference}}, options, baseline);
}

TEST(TranslationScore, HasTheMetricsThatWereAskedFor) {
  const TranslationScore found = score({.metric = "ter,chrf++", .tokenize = BleuTokens::kChar});
  ASSERT_EQ(found.metrics.size(), 2u);
  EXPECT_EQ(found.metrics[0].name, "TER");
  EXPECT_NEAR(found.metrics[0].score, 100 * 3.0 / 10, 1e-12);  // a word, and two shifts
  EXPECT_EQ(found.metrics[1].name, "chrF2++");
  EXPECT_THAT(found.metrics[0].sentences, testing::SizeIs(2));
  EXPECT_FALSE(found.metrics[0].paired);
  EXPECT_THAT(score({.tokenize = BleuTokens::kChar}).metrics[0].signature,
              testing::HasSubstr("tok:char"));
}

TEST(TranslationScore, LowerCaseIsComparedIfAsked) {
  const std::vector<std::string> cased{"The Cat sat on the Mat", "A Dog is here"};
  const auto score_of = [&](bool lowercase) {
    return score_translations(Context(1), {kReference, {cased}},
                              {.metric = "bleu,chrf", .lowercase = lowercase});
  };
  const TranslationScore mixed = score_of(false), lower = score_of(true);
  EXPECT_TRUE(mixed.lacks_capitals);
  EXPECT_FALSE(lower.lacks_capitals);
  for (std::size_t m = 0; m < 2; ++m) {
    EXPECT_LT(mixed.metrics[m].score, 90);
    EXPECT_NEAR(lower.metrics[m].score, 100, 1e-9);
    EXPECT_THAT(mixed.metrics[m].signature, testing::HasSubstr("|case:mixed|"));
    EXPECT_THAT(lower.metrics[m].signature, testing::HasSubstr("|case:lc|"));
  }
  EXPECT_FALSE(score({}).lacks_capitals) << "no reference has one";
  EXPECT_FALSE(score_translations(Context(1), {cased, {cased}}, {}).lacks_capitals);
}

TEST(TranslationScore, OptionsAreChecked) {
  EXPECT_THROWS(score({.metric = "meteor"}), kOptionValue, "bleu, chrf, chrf++, ter");
  EXPECT_THROWS(score({.metric = "ter,ter"}), kOptionValue, "--metric: ter is not named once");
  EXPECT_THROWS(score({.metric = ""}), kOptionValue, "--metric");
  EXPECT_THROWS(score({.resamples = 0}), kOptionValue, "--resamples: 0");
}

TEST(TranslationScore, JsonSaysWhatWasCompared) {
  const Json alone = json_of_score(score({.metric = "bleu"}), SentenceScores::kYes);
  EXPECT_EQ(alone.find("resamples"), nullptr);
  const Json& metric = alone.at("metrics").array()[0];
  EXPECT_EQ(metric.at("sentences").array().size(), 2u);
  EXPECT_EQ(metric.find("p_value"), nullptr);
  const Json compared =
      json_of_score(score({.metric = "bleu", .resamples = 20}, &kReference), SentenceScores::kNo);
  EXPECT_EQ(compared.at("resamples").whole(), 20);
  const Json& other = compared.at("metrics").array()[0];
  EXPECT_EQ(other.find("sentences"), nullptr);
  EXPECT_LT(other.at("difference").at("value").number(), 0);
  EXPECT_NEAR(other.at("baseline").at("score").number(), 100, 1e-12);
}

TEST(TranslationScore, FilesHaveAsManyLines) {
  const TestFolder folder;
  write_file_atomically(folder / "h", "a\nb\n");
  write_file_atomically(folder / "r", "a\nb\nc\n");
  const auto score_of = [&](const TranslationFiles& files) {
    return score_translation_files(Context(1), files, {.metric = "ter"});
  };
  EXPECT_THROWS(score_of({folder / "h", {folder / "r"}, ""}), kInputFormat, "r has 3 lines, but ");
  EXPECT_THROWS(score_of({folder / "r", {folder / "r"}, folder / "h"}), kInputFormat,
                "h has 2 lines");
  EXPECT_EQ(score_of({folder / "h", {folder / "h", folder / "h"}, folder / "h"}).references, 2);
}

}  // namespace
}  // namespace fovea
