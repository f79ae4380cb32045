// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(LoadClassifier, GivesBackWhatWasTrained) {
  const TestFolder folder;
  const LoadedClassifier loaded = load_classifier(trained(folder, tiny_classifier(folder)));
  EXPECT_THAT(loaded.labels, ElementsAre("bad", "good"));
  EXPECT_EQ(loaded.settings.model.task, ClassifierTask::kBinary);
  EXPECT_EQ(loaded.settings.text.tokenizer, "word");
  EXPECT_EQ(loaded.settings.text.max_length, 7);
  EXPECT_EQ(safetensors_bytes(parameter_tensors(loaded.model->parameters())),
            safetensors_bytes(read_model_weights(folder / "model").tensors));
}

// Models of before there were n-grams have none of their settings.
TEST(LoadClassifier, ReadsAnOldConfigAsAModelWithoutNgrams) {
  const TestFolder folder;
  ClassifierSettings settings = tiny_classifier(folder);
  settings.model.ngrams = 1;
  const LoadedClassifier loaded = load_classifier(trained(folder, settings));
  std::string text = read_model_file(folder / "model", "config.json");
  for (const char* line : {"\"ngrams\": 1,", "\"ngram_width\": 0,", "\"buckets\": 0,"}) {
    const std::size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << line;
    text.erase(at, std::string_view(line).size());
  }
  EXPECT_EQ(classifier_config_from_text(text, "c.json").settings.model, loaded.settings.model);
  EXPECT_EQ(loaded.settings.model.ngrams, 1);
}

// 60 texts of 6 or 7 tokens: so few n-grams need no large table.
TEST(LoadClassifier, FewTextsMakeASmallTable) {
  const TestFolder folder;
  const LoadedClassifier loaded = load_classifier(trained(folder, tiny_classifier(folder)));
  const ClassifierConfig& model = loaded.settings.model;
  EXPECT_EQ(model.ngrams, 2);
  EXPECT_GT(model.buckets, 54 * 4);
  EXPECT_LT(model.buckets, 60 * 7);
  EXPECT_EQ(loaded.model->parameters()[1]->name, "ngrams.weight");
  EXPECT_EQ(loaded.model->parameters()[1]->value.size(), model.buckets * 16);
}

TEST(LoadClassifier, RefusesOtherKindsAndWrongLabels) {
  EXPECT_THROWS(classifier_config_from_text(R"({"kind":"language_model"})", "c.json"),
                kModelWrongKind, "c.json: expected \"kind\": \"classifier\"");
  const TestFolder folder;
  const LoadedClassifier loaded = load_classifier(trained(folder, tiny_classifier(folder)));
  const std::vector<NamedFile> files = {
      {"config.json", config_text(loaded.settings, {.labels = {"bad"}})},
      {"tokenizer.txt", to_text(loaded.tokenizer->data())}};
  write_model_files(folder / "other", files);
  EXPECT_THROWS(load_classifier(folder / "other"), kModelDamaged, "expected 2 labels, got 1");
}

TEST(TokensOfText, AreCutAtEitherEnd) {
  const auto tokenizer = make_tokenizer({.kind = "word",
                                         .lower = true,
                                         .marks = false,
                                         .split = WordSplit::kPunctuation,
                                         .words = {{"it's", 1}, {"a", 1}, {"film", 1}, {".", 1}}});
  ClassifierTextOptions options;
  const auto tokens = [&](std::string_view text) {
    return tokens_of_text(*tokenizer, options, text, "text");
  };
  EXPECT_THAT(tokens("It's a FILM.").ids, ElementsAre(2, 3, 4, 5));
  EXPECT_FALSE(tokens("It's a FILM.").truncated());
  EXPECT_THAT(tokens(" ").ids, ElementsAre(kPadToken));
  options.max_length = 3;
  EXPECT_THAT(tokens("It's a FILM.").ids, ElementsAre(2, 3, 4));
  EXPECT_TRUE(tokens("It's a FILM.").truncated());
  options.truncate = Truncate::kFront;
  EXPECT_THAT(tokens("It's a FILM.").ids, ElementsAre(3, 4, 5));
}

}  // namespace
}  // namespace fovea
