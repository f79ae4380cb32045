// SPDX-License-Identifier: Apache-2.0
// Classifiers and taggers that begin from an encoder, in a program. What the command does with them
// is tested by tests/cli/test_encoder_base.py.
#include "fovea/task/encoder_base.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "fovea/base/sanitizer.h"
#include "fovea/models.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"
#include "tests/task/tag/tiny.h"
#include "tests/task/tiny_encoder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

ClassifierSettings classifier_from(const TestFolder& folder, const fs::path& base) {
  ClassifierSettings settings = tiny_classifier(folder);
  settings.from.base = base.string();
  take_base(settings, {});
  return settings;
}

TaggerSettings tagger_from(const TestFolder& folder, const fs::path& base) {
  TaggerSettings settings = tiny_tagger(folder);
  settings.from.base = base.string();
  take_base(settings, {});
  return settings;
}

TEST(EncoderAsBase, DecidesLayersTokensAndWhatIsDropped) {
  const TestFolder folder;
  const ClassifierSettings settings = classifier_from(folder, write_bert(folder));
  EXPECT_EQ(settings.model.kind, ClassifierModel::kPretrained);
  EXPECT_EQ(settings.model.base.layers, 2);
  EXPECT_EQ(settings.model.width, 8);
  EXPECT_EQ(settings.model.block, 24);
  EXPECT_EQ(settings.model.dropout, 0.2);
  EXPECT_EQ(settings.model.output_dropout, 0.3);
  EXPECT_EQ(settings.text.tokenizer, kPretrainedKind);
}

TEST(EncoderAsBase, BecomesModelsOfAProgram) {
  const TestFolder folder;
  const fs::path base = write_bert(folder);
  const fs::path classifier = trained(folder, classifier_from(folder, base));
  const auto texts = std::get<models::Classifier>(models::load(classifier));
  EXPECT_THAT(texts.labels(), testing::ElementsAre("bad", "good"));
  EXPECT_EQ(texts.classify({"What a fine film", "A dull film."})[0].values.size(), 2U);

  TrainingObserver silent;
  const fs::path tags = folder / "tags";
  train_tagger(Context(2), prepare_run(tagger_from(folder, base)), tags, {}, silent);
  const auto words = std::get<models::Tagger>(models::load(tags));
  EXPECT_EQ(words.tag_words({{"fine", "film"}})[0].tags[0].size(), 2U);
}

TEST(EncoderAsBase, FrozenPartsAreForeseen) {
  const TestFolder folder;
  ClassifierSettings settings = classifier_from(folder, write_bert(folder));
  const double all = training_memory(Context(1), prepare_run(settings));
  settings.from.freeze = "embeddings,0";
  const ClassifierRun run = prepare_run(settings);
  EXPECT_EQ(run.frozen, 16 * 8 + 24 * 8 + 2 * 8 + 2 * 8 + (4 * 64 + 4 * 8) + (2 * 96 + 20) + 4 * 8);
#if !defined(FOVEA_ADDRESS_SANITIZER)  // under which the process grows by more than that
  EXPECT_LE(training_memory(Context(1), run), all + (1 << 20));  // it grows a little
#else
  EXPECT_GT(all, 0);
#endif
}

TEST(EncoderAsBase, IsNoneWithoutTheLayersOfOne) {
  const TestFolder folder;
  const fs::path own = trained(folder, tiny_classifier(folder));
  EXPECT_THROWS(read_encoder_base(own, BertHead::kText), kModelWrongKind, "trained from the start");
  EXPECT_THROWS(read_encoder_base(folder / "none", BertHead::kText), kModelMissing,
                "no such folder");
}

TEST(EncoderAsBase, AShortRunWarmsUpForATenthOfIt) {
  TrainOptions recipe;
  apply_encoder_recipe(recipe);
  resolve_encoder_recipe(recipe, 20, Warmup::kUsual);
  EXPECT_EQ(recipe.stop_after, "150u");
  EXPECT_EQ(recipe.warmup, 15);
  apply_encoder_recipe(recipe);
  resolve_encoder_recipe(recipe, 500, Warmup::kUsual);
  EXPECT_EQ(recipe.stop_after, "3e");
  EXPECT_EQ(recipe.warmup, 50);
  resolve_encoder_recipe(recipe, 20, Warmup::kAsSaid);
  EXPECT_EQ(recipe.warmup, 50);
}

}  // namespace
}  // namespace fovea
