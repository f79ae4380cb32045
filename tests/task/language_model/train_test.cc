// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/base/file.h"
#include "tests/support/throws.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

TEST(TrainLanguageModel, LearnsATinyText) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.lr = 1e-2;
  settings.recipe.stop_after = "200u";
  TrainingObserver silent;
  const TrainResult result =
      train_language_model(Context(2), prepare_run(settings), folder / "m", {}, silent);
  EXPECT_EQ(result.state.step, 200);
  EXPECT_EQ(result.state.tokens, 200 * 4 * 12);
  EXPECT_LT(result.state.best_valid_loss, 1.5);
}

// Dropout and sequences of mixed lengths on; several workers take part.
TEST(TrainLanguageModel, BitsDoNotDependOnThreads) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.text.data = "lines";
  settings.text.batch_size = 16;
  settings.model.width = 64;
  settings.model.block = 32;
  settings.model.dropout = 0.1;
  TrainingObserver silent;
  std::string expected;
  for (const int threads : {1, 2, 3, 8}) {
    const index helped = Context::items_run_by_helpers();
    const auto output = folder / std::to_string(threads);
    train_language_model(Context(threads), prepare_run(settings), output, {}, silent);
    const std::string bytes = read_file(output / "model.safetensors");
    if (expected.empty()) expected = bytes;
    EXPECT_EQ(bytes == expected, true) << threads << " threads";
    if (threads > 1) {
      EXPECT_GT(Context::items_run_by_helpers(), helped);
    }
  }
}

TEST(TrainLanguageModel, ResumedRunsEndWithTheSameBits) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.model.dropout = 0.2;
  settings.recipe.accumulate = 2;
  TrainingObserver silent;
  train_language_model(Context(2), prepare_run(settings), folder / "straight", {}, silent);

  struct StopAtStep : TrainingObserver {
    void updated(const UpdateRecord& record, double) override { step = record.step; }
    Request request() override { return step >= 13 ? Request::kStop : Request::kNone; }
    index step = 0;
  } stop;
  train_language_model(Context(1), prepare_run(settings), folder / "broken", {}, stop);
  train_language_model(Context(3), prepare_run(settings), folder / "broken",
                       {.resume = true, .checkpoint = {}}, silent);
  for (const char* file : {"model.safetensors", "checkpoints/step-000030/optimizer.safetensors"}) {
    EXPECT_EQ(read_file(folder / "straight" / file) == read_file(folder / "broken" / file), true)
        << file;
  }
}

TEST(TrainLanguageModel, OtherTextIsAnotherRun) {
  const TestFolder folder;
  const LanguageModelSettings settings = tiny_settings(folder);
  TrainingObserver silent;
  train_language_model(Context(1), prepare_run(settings), folder / "m", {}, silent);
  std::ofstream(folder / "text.txt", std::ios::app) << "one more line\n";
  EXPECT_THROWS(train_language_model(Context(1), prepare_run(settings), folder / "m",
                                     {.resume = true, .checkpoint = {}}, silent),
                kConfig, "cannot resume");
}

}  // namespace
}  // namespace fovea
