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
