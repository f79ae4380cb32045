// SPDX-License-Identifier: Apache-2.0
// Deep stacks train: twelve layers on each side, with norms before each part from the
// first update on at the full learning rate, with norms behind each part after a warm-up.
#include <gtest/gtest.h>

#include "tests/task/translate/tiny.h"

namespace fovea {
namespace {

struct LastLoss : TrainingObserver {
  void evaluated(const EvaluationRecord& record) override { loss = record.valid_loss; }
  double loss = 0;
};

double loss_of(NormPosition norms, index warmup) {
  const TestFolder folder;
  TranslatorSettings settings = tiny_translator(folder);
  settings.model.encoder_layers = settings.model.decoder_layers = 12;
  settings.model.norm_position = norms;
  settings.text.batch_tokens = 100;
  settings.recipe.lr = settings.recipe.min_lr = 2e-3;
  settings.recipe.warmup = warmup;
  settings.recipe.stop_after = settings.recipe.eval_every = settings.recipe.save_every = "110u";
  LastLoss last;
  train_translator(Context(2), prepare_run(settings), folder / "model", {}, last);
  return last.loss;
}

// A word of four and the end, known by their frequencies alone, cost 1.6; the lengths of sentences
// tell a little of the end.
constexpr double kOfFrequencies = 1.55;

TEST(DeepTranslator, TrainsWithNormsBeforeAndWithoutWarmup) {
  EXPECT_LT(loss_of(NormPosition::kPre, 0), kOfFrequencies / 2);
}

TEST(DeepTranslator, TrainsWithNormsBehindAndWarmup) {
  EXPECT_LT(loss_of(NormPosition::kPost, 50), kOfFrequencies / 2);
}

}  // namespace
}  // namespace fovea
