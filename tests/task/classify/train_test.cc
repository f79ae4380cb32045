// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/task/classify/run.h"
#include "fovea/train/model_folder.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

TEST(TrainClassifier, LearnsAndGivesTheSameBitsForAnyNumberOfThreads) {
  const TestFolder folder;
  const ClassifierRun run = prepare_run(tiny_classifier(folder));
  TrainingObserver silent;
  const auto weights = [&](int threads, const char* name) {
    train_classifier(Context(threads), run, folder / name, {}, silent);
    return safetensors_bytes(read_model_weights(folder / name).tensors);
  };
  EXPECT_EQ(weights(1, "one"), weights(3, "three"));
  const LoadedClassifier loaded = load_classifier(folder / "one");
  const Context context(1);
  Tape tape(context, TapeMode::kInference);
  const auto said = predict_set(tape, *loaded.model, *run.validation, {}, {});
  const Validation found = measure(*said, run.validation->examples(), loaded.model->config(), {},
                                   ClassifierMetric::kAuto);
  EXPECT_EQ(found.metrics.at(0).value, 1);
}

}  // namespace
}  // namespace fovea
