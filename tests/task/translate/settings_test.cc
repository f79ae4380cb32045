// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/settings.h"

#include <gtest/gtest.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

void check(void (*change)(TranslatorSettings&)) {
  TranslatorSettings settings;
  change(settings);
  check_options(settings);
}

TEST(TranslatorSettings, DefaultsAndPresetsAreValid) {
  check([](TranslatorSettings&) {});
  for (const TranslatorPreset& preset : translator_presets()) {
    TranslatorSettings settings;
    apply_preset(preset.name, settings);
    check_options(settings);
    settings.model.vocabulary = settings.model.target_vocabulary = 100;
    EXPECT_GT(parameter_count(settings.model), 0) << preset.name;
  }
  TranslatorSettings settings;
  EXPECT_THROWS(apply_preset("huge", settings), kOptionValue, "tiny, small, base");
}

TEST(TranslatorSettings, NamesWhatIsWrong) {
  using S = TranslatorSettings;
  EXPECT_THROWS(check([](S& s) { s.text.source = {"a"}; }), kOptionValue, "--source, --target");
  EXPECT_THROWS(check([](S& s) { s.text.valid_target = {"a"}; }), kOptionValue, "--valid-source");
  EXPECT_THROWS(check([](S& s) { s.text.train = {"\xff"}; }), kOptionValue, "--train");
  EXPECT_THROWS(check([](S& s) { s.text.batch_tokens = 0; }), kOptionValue, "--batch-tokens");
  EXPECT_THROWS(check([](S& s) { s.text.token_dropout = 1; }), kOptionValue, "--token-dropout");
  EXPECT_THROWS(check([](S& s) { s.text.label_smoothing = -1; }), kOptionValue,
                "--label-smoothing");
  EXPECT_THROWS(check([](S& s) { s.text.tokenizer = "none"; }), kOptionValue, "--tokenizer");
  EXPECT_THROWS(check([](S& s) {
                  s.text.tokenizer = "char";
                  s.text.min_count = 3;
                }),
                kOptionValue, "--min-count");
  EXPECT_THROWS(check([](S& s) {
                  s.text.target_tokenizer = "byte";
                  s.text.lower = true;
                }),
                kOptionValue, "--lower");
  EXPECT_THROWS(check([](S& s) {
                  s.text.target_tokenizer = "byte";
                  s.text.shared_vocabulary = true;
                }),
                kOptionValue, "--shared-vocabulary");
  EXPECT_THROWS(check([](S& s) { s.model.share_embeddings = true; }), kOptionValue,
                "--share-embeddings");
  EXPECT_THROWS(check([](S& s) { s.recipe.lr = 0; }), kOptionValue, "--lr");
}

}  // namespace
}  // namespace fovea
