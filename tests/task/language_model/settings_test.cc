// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/settings.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

TEST(LanguageModelSettings, EveryPresetPassesItsChecks) {
  for (const LanguageModelPreset& preset : language_model_presets()) {
    LanguageModelSettings settings;
    apply_preset(preset.name, settings);
    EXPECT_NO_THROW(check_options(settings)) << preset.name;
  }
}

// Spec L12: 478,639 parameters at the notebook's vocabulary, 480,438 at the data pack's.
TEST(LanguageModelSettings, SourceIsTheBooksModel) {
  LanguageModelSettings settings;
  apply_preset("source", settings);
  settings.model.vocabulary = 1071;
  EXPECT_EQ(parameter_count(resolve(settings.model)), 478639);
  settings.model.vocabulary = 1078;
  EXPECT_EQ(parameter_count(resolve(settings.model)), 480438);
}

// Radford et al. 2019 as published: 124,439,808 with the vocabulary of 50,257.
TEST(LanguageModelSettings, Gpt2HasItsSize) {
  LanguageModelSettings settings;
  apply_preset("gpt2", settings);
  settings.model.vocabulary = 50257;
  EXPECT_EQ(parameter_count(resolve(settings.model)), 124439808);
}

TEST(LanguageModelSettings, UnknownPresetListsThoseThereAre) {
  LanguageModelSettings settings;
  const auto error = error_of([&] { apply_preset("huge", settings); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kOptionValue);
  EXPECT_STREQ(error->what(), "--preset: expected one of: tiny, small, gpt2, source; got 'huge'");
}

TEST(LanguageModelSettings, ChecksTextAndRecipe) {
  const auto refused = [](auto change) {
    LanguageModelSettings settings;
    change(settings);
    return error_of([&] { check_options(settings); }).has_value();
  };
  EXPECT_TRUE(refused([](auto& s) { s.text.valid_fraction = 1; }));
  EXPECT_TRUE(refused([](auto& s) { s.text.batch_size = 0; }));
  EXPECT_TRUE(refused([](auto& s) { s.text.data = "files"; }));
  EXPECT_TRUE(refused([](auto& s) { s.text.tokenizer = "words"; }));
  EXPECT_TRUE(refused([](auto& s) { s.recipe.lr = -1; }));
}

// JSON could not give them back.
TEST(LanguageModelSettings, PathsThatAreNotUtf8AreRefused) {
  LanguageModelSettings settings;
  settings.text.valid = {"/texts/\xe4\xb8\xad.txt"};
  EXPECT_NO_THROW(check_options(settings));
  settings.text.valid = {"/texts/caf\xe9.txt"};
  EXPECT_THROWS(check_options(settings), kOptionValue,
                "--valid: /texts/caf\\xE9.txt: not UTF-8, and a model cannot store it");
  settings.text.train = {"a.txt", "b\xff"};
  EXPECT_THROWS(check_options(settings), kOptionValue, "b\\xFF: not UTF-8");
}

// An option that would have no effect is a misunderstanding.
TEST(LanguageModelSettings, PatienceNeedsEvaluations) {
  LanguageModelSettings settings;
  settings.recipe.patience = 2;
  EXPECT_NO_THROW(check_options(settings));
  settings.text.valid_fraction = 0;
  EXPECT_THROWS(check_options(settings), kOptionValue,
                "--patience 2: has no effect without --valid-fraction");
  settings.text.valid = {"valid.txt"};
  EXPECT_NO_THROW(check_options(settings));
}

TEST(LanguageModelSettings, OptionsOfTextNeedWhatTheyAreOf) {
  const auto error = [](auto change) {
    LanguageModelSettings settings;
    change(settings.text);
    return error_of([&] { check_options(settings); });
  };
  const auto message = [&](auto change) -> std::string {
    const auto thrown = error(change);
    EXPECT_TRUE(thrown);
    return thrown ? thrown->what() : "";
  };
  EXPECT_EQ(message([](auto& t) { t.min_count = 3; }),
            "--min-count 3: has no effect without --tokenizer word");
  EXPECT_EQ(message([](auto& t) { t.vocabulary = "v.txt"; }),
            "--vocabulary v.txt: has no effect without --tokenizer word");
  EXPECT_EQ(message([](auto& t) { t.max_length = 9; }),
            "--max-length 9: has no effect without --data lines");
  EXPECT_EQ(message([](auto& t) { t.truncate = Truncate::kFront; }),
            "--truncate front: has no effect without --max-length");
  EXPECT_EQ(message([](auto& t) { t.tokenizer = "byte", t.lower = true; }),
            "--lower: --tokenizer byte keeps every byte as it is");
  EXPECT_EQ(message([](auto& t) { t.tokenizer = "word", t.min_count = 0; }),
            "--min-count: 0 is not at least 1");
  EXPECT_EQ(message([](auto& t) { t.data = "lines", t.max_length = 66; }),
            "--max-length: 66 is not 0 (none), or in 2 to 65 (--block and 1)");
  EXPECT_EQ(message([](auto& t) { t.data = "lines", t.max_length = 1; }),
            "--max-length: 1 is not 0 (none), or in 2 to 65 (--block and 1)");
  EXPECT_FALSE(error([](auto& t) {
    t.tokenizer = "word", t.lower = true, t.min_count = 1, t.marks = false;
    t.data = "lines", t.max_length = 65, t.truncate = Truncate::kFront;
  }));
  EXPECT_FALSE(error([](auto& t) { t.lower = true; }));
}

}  // namespace
}  // namespace fovea
