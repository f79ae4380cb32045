// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/embeddings.h"

#include <gmock/gmock.h>

#include "fovea/model/pass_plan.h"
#include "fovea/task/classify/run.h"
#include "fovea/train/model_folder.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

using testing::HasSubstr;

ClassifierSettings with_vectors(const TestFolder& folder, bool frozen) {
  ClassifierSettings settings = tiny_classifier(folder);
  settings.text.embeddings =
      write_file(folder, "words.vec", "4 3\nfine 1 2 3\nFILM 4 5 6\nother 7 8 9\ndull -1 0 1\n");
  settings.model.width = 0;
  settings.model.freeze_embeddings = frozen;
  return settings;
}

std::vector<float> row_of(const std::filesystem::path& model, const std::string& word) {
  const LoadedClassifier loaded = load_classifier(model);
  const token id = loaded.tokenizer->encode(word).at(0);
  const Tensor& table = loaded.model->parameters()[0]->value;
  return {table.rows<float>()[id], table.rows<float>()[id] + table.shape()[1]};
}

TEST(WordVectorsOfARun, GiveTheWidthAndCountWhatIsFound) {
  const TestFolder folder;
  const ClassifierRun run = prepare_run(with_vectors(folder, false));
  EXPECT_EQ(run.settings.model.width, 3);
  EXPECT_EQ(run.outputs.vectors.exact, 2);
  EXPECT_EQ(run.outputs.vectors.lower, 1);
  EXPECT_EQ(run.outputs.vectors.words, run.tokenizer->vocabulary_size() - 2);
  EXPECT_THAT(run.overview, testing::Contains(HasSubstr("words.vec: 3 of ")));
  EXPECT_THAT(run.overview, testing::Contains(HasSubstr("2 as spelled and 1 in other case")));
}

TEST(WordVectorsOfARun, StayWhereTheTableIsFrozen) {
  const TestFolder folder;
  const auto model = trained(folder, with_vectors(folder, true));
  EXPECT_THAT(row_of(model, "fine"), testing::ElementsAre(1, 2, 3));
  EXPECT_THAT(row_of(model, "film"), testing::ElementsAre(4, 5, 6));
  EXPECT_EQ(
      classifier_config_from_text(read_model_file(model, "config.json"), "c").outputs.vectors.exact,
      2);
}

TEST(WordVectorsOfARun, AreTrainedOtherwise) {
  const TestFolder folder;
  const auto row = row_of(trained(folder, with_vectors(folder, false)), "fine");
  EXPECT_NE(row.at(0), 1);
  EXPECT_NEAR(row.at(0), 1, 0.7) << "they begin there";
}

TEST(WordVectorsOfARun, AreNotReadAgainByAResumedRunWhichHasTheSameBits) {
  for (const bool frozen : {true, false}) {
    const TestFolder folder;
    const ClassifierSettings settings = with_vectors(folder, frozen);
    const ClassifierRun run = prepare_run(settings);
    TrainingObserver silent;
    train_classifier(Context(2), run, folder / "whole", {}, silent);
    // As if it had been stopped after the checkpoint of update 40.
    train_classifier(Context(1), run, folder / "parts", {}, silent);
    std::filesystem::remove_all(folder / "parts/checkpoints/step-000060");
    std::filesystem::remove(settings.text.embeddings);
    const ClassifierRun again =
        prepare_run(run.settings, run.tokenizer->data(), RunWeights::kStored);
    EXPECT_FALSE(again.vectors.has_value());
    train_classifier(Context(2), again, folder / "parts", {.resume = true}, silent);
    const auto bits = [&](const char* name) {
      return safetensors_bytes(
          read_model_weights(folder.path() / name / "checkpoints/step-000060").tensors);
    };
    EXPECT_EQ(bits("parts"), bits("whole"));
  }
}

TEST(WordVectorsOfARun, RefuseAnotherWidth) {
  const TestFolder folder;
  ClassifierSettings settings = with_vectors(folder, false);
  settings.model.width = 8;
  EXPECT_THROWS(prepare_run(settings), kOptionValue,
                "its vectors have 3 numbers; the rows of words are to have 8");
}

TEST(WordVectorsOfARun, AFrozenTableTakesNoMemoryForItsTraining) {
  const TestFolder folder;
  std::string wide = "fine";
  for (int i = 0; i < 65536; ++i) wide += " 1";
  ClassifierSettings settings = tiny_classifier(folder);
  settings.text.embeddings = write_file(folder, "wide.vec", wide + "\n");
  settings.model.width = 0;
  const ClassifierRun trains = prepare_run(settings);
  settings.model.freeze_embeddings = true;
  const ClassifierRun frozen = prepare_run(settings);
  const double table = 4.0 * static_cast<double>(frozen_count(frozen.settings.model));
  // Two moments, and the gradient, while it grows twice. The tape has no gradients of its rows
  // either.
  // Not of training_memory(), which is no less than what the process has held at its highest, in
  // whatever test that was.
  const double less = added_memory(Context(1), trains) - added_memory(Context(1), frozen);
  const auto tape_of = [&](const ClassifierRun& run) {
    const index tokens = run.training->largest_batch(), texts = run.settings.text.batch_size;
    return plan_pass(Context(1), run.settings.model,
                     {texts, {.tokens = tokens, .sequences = texts}})
        .tape;
  };
  EXPECT_NEAR(less - (tape_of(trains) - tape_of(frozen)), 4 * table, table);
}

}  // namespace
}  // namespace fovea
