// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/settings.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

void refuse(void (*change)(ClassifierSettings&), std::string_view message) {
  ClassifierSettings settings;
  change(settings);
  EXPECT_THROWS(check_options(settings), kOptionValue, std::string(message));
}

TEST(ClassifierSettings, AreFineByDefault) { EXPECT_NO_THROW(check_options(ClassifierSettings())); }

TEST(ClassifierSettings, RefuseWhatMeansNothing) {
  refuse([](auto& s) { s.text.multi_label = s.text.regression = true; },
         "--multi-label, --regression");
  refuse([](auto& s) { s.text.metric = ClassifierMetric::kRmse; }, "--metric rmse");
  refuse(
      [](auto& s) {
        s.text.regression = true;
        s.text.metric = ClassifierMetric::kAccuracy;
      },
      "--metric accuracy");
  refuse(
      [](auto& s) {
        s.text.multi_label = true;
        s.text.metric = ClassifierMetric::kAccuracy;
      },
      "--metric accuracy: not measured with --multi-label");
  refuse(
      [](auto& s) {
        s.text.regression = true;
        s.text.class_weights = "balanced";
      },
      "--class-weights");
  refuse([](auto& s) { s.text.label_smoothing = 1; }, "--label-smoothing: 1");
  refuse(
      [](auto& s) {
        s.text.regression = true;
        s.text.label_smoothing = .1;
      },
      "--label-smoothing, --regression");
  refuse(
      [](auto& s) {
        s.text.tokenizer = "char";
        s.text.min_count = 3;
      },
      "--min-count");
  refuse(
      [](auto& s) {
        s.text.tokenizer = "char";
        s.text.words = WordSplit::kSpaces;
      },
      "--words");
  refuse([](auto& s) { s.text.tokenizer = "chars"; }, "tokenizer");
}

TEST(ClassifierSettings, RefuseNumbersOutOfRange) {
  refuse([](auto& s) { s.text.batch_size = 0; }, "--batch-size: 0");
  refuse([](auto& s) { s.text.max_length = -1; }, "--max-length: -1");
  refuse([](auto& s) { s.text.min_count = 0; }, "--min-count: 0");
  refuse([](auto& s) { s.text.valid_fraction = 1; }, "--valid-fraction: 1");
  refuse([](auto& s) { s.recipe.stop_after = "soon"; }, "--stop-after");
  refuse([](auto& s) { s.text.train = {"\xFF"}; }, "--train");
  refuse([](auto& s) { s.text.table.label_column = "\xFF"; }, "--label-column");
}

TEST(ResolveLengths, GiveFewTextsEnoughUpdates) {
  const auto lengths = [](index updates_per_epoch, std::string stop = "auto") {
    TrainOptions recipe = ClassifierSettings().recipe;
    recipe.stop_after = std::move(stop);
    resolve_lengths(recipe, updates_per_epoch, {.epochs = kClassifierEpochs});
    return recipe.stop_after + " " + recipe.eval_every + " " + recipe.save_every;
  };
  EXPECT_EQ(lengths(703), "10e 1e 1e");
  EXPECT_EQ(lengths(100), "10e 1e 1e");
  EXPECT_EQ(lengths(99), "1000u 1e 1e");
  EXPECT_EQ(lengths(6), "1000u 50u 50u");
  EXPECT_EQ(lengths(6, "2h"), "2h 50u 50u");
}

}  // namespace
}  // namespace fovea
