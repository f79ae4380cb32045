// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;

// The tokenizer's ids of letters, and what stands between the texts.
std::string tokens_of(const Tokenizer& letters, std::string_view pair, index most,
                      Truncate truncate = Truncate::kEnd) {
  ClassifierTextOptions options;
  options.input = InputKind::kPairs;
  options.max_length = most;
  options.truncate = truncate;
  const TextTokens tokens = tokens_of_text(letters, options, pair, "f:1");
  std::string text;
  for (const token id : tokens.ids) {
    if (id == letters.vocabulary_size()) {
      text += '|';
    } else if (id == kPadToken) {
      text += '_';
    } else {
      letters.append_bytes(text, id);
    }
  }
  return text + fmt::format(" {}", tokens.length);
}

TEST(TokensOfPair, AreBothTextsAndTheLongerIsCutFirst) {
  const auto letters = make_tokenizer(
      tokenizer_kind("char").learn("abcdefghijkl", "letters", {.marks = false, .min_count = 1}));
  EXPECT_EQ(tokens_of(*letters, pair_text("abc", "de"), 0), "abc|de| 7");
  EXPECT_EQ(tokens_of(*letters, pair_text("abc", "abc"), 0), "abc|abc| 8") << "so |u - v| is 0";
  EXPECT_EQ(tokens_of(*letters, pair_text("", "de"), 0), "_|de| 5");
  EXPECT_EQ(tokens_of(*letters, "abc", 0), "abc|_| 6") << "no second text";
  EXPECT_EQ(tokens_of(*letters, pair_text("abcdefgh", "ij"), 7), "abc|ij| 12");
  EXPECT_EQ(tokens_of(*letters, pair_text("ij", "abcdefgh"), 7), "ij|abc| 12");
  EXPECT_EQ(tokens_of(*letters, pair_text("abcdef", "ghijkl"), 7), "abc|gh| 14");
  EXPECT_EQ(tokens_of(*letters, pair_text("abcdef", "ghijkl"), 4), "a|g| 14");
  EXPECT_EQ(tokens_of(*letters, pair_text("abcdef", "ghijkl"), 7, Truncate::kFront), "def|kl| 14");
}

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
