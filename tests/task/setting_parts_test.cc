// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/setting_parts.h"

#include <gtest/gtest.h>

#include "fovea/task/language_model/settings.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

void check(void (*change)(LanguageModelSettings&)) {
  LanguageModelSettings settings;
  change(settings);
  check_fields(settings, LanguageModelSettings());
}

TEST(SettingChecks, ATextIsUtf8) {
  EXPECT_NO_THROW(check([](auto& s) { s.text.train = {"评论.tsv"}; }));
  EXPECT_THROWS(check([](auto& s) { s.text.train = {"a\xff.tsv"}; }), kOptionValue, "--train: ");
}

TEST(SettingChecks, ANumberIsInTheRangeOfItsField) {
  EXPECT_THROWS(check([](auto& s) { s.text.min_count = 0; }), kOptionValue,
                "--min-count: 0 is not at least 1");
  EXPECT_THROWS(check([](auto& s) { s.recipe.beta2 = 1; }), kOptionValue,
                "--beta2: 1 is not at least 0 and below 1");
}

TEST(SettingChecks, AValueOtherThanTheUsualHasAnEffect) {
  EXPECT_THROWS(check([](auto& s) { s.text.max_length = 9; }), kOptionValue,
                "--max-length 9: has no effect without --data lines");
  EXPECT_NO_THROW(check([](auto& s) {
    s.text.max_length = 9;
    s.text.data = "lines";
  }));
}

TEST(SettingChecks, OptionsGoTogether) {
  require_together(true, "--a, --b", "never said", "");
  EXPECT_THROWS(require_together(false, "--a, --b", "not both", "leave one out"), kOptionValue,
                "--a, --b: not both");
}

TEST(SubwordOptions, NeedAModel) {
  EXPECT_NO_THROW(require_subword_model(true, "a.model", "--tokenizer-model"));
  EXPECT_NO_THROW(require_subword_model(false, "", "--tokenizer-model"));
  EXPECT_THROWS(require_subword_model(true, "", "--tokenizer-model"), kOptionValue,
                "needs --tokenizer-model FILE.model");
}

TEST(SubwordOptions, TheFileIsReadIfOneIsNamed) {
  EXPECT_EQ(with_subword_model({}, "").model, "");
  EXPECT_THROWS(with_subword_model({}, "no.model"), kMissingInput, "no.model");
}

}  // namespace
}  // namespace fovea
