// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "fovea/base/file.h"
#include "fovea/train/model_folder.h"
#include "tests/support/folder.h"
#include "tests/train/toy.h"

namespace fovea {
namespace {

// 12 updates, evaluated after 5, 10 and 12 of them: 3, then 2, then 4.
void train(const std::filesystem::path& folder) {
  const std::vector<NamedFile> files = {{"config.json", "{}"}};
  write_model_files(folder, files);
  ToyObjective objective;
  objective.validation_loss = [](index step) { return step == 5 ? 3.0 : step == 10 ? 2.0 : 4.0; };
  TrainingObserver silent;
  TrainOptions options{.warmup = 0, .stop_after = "12u", .eval_every = "5u", .save_every = "4u"};
  options.log_every = 3;
  Trainer(Context(1), objective, silent,
          {.options = options, .folder = folder, .identity = {}, .attachments = files})
      .run();
}

TEST(RunSummary, OfARunIsWhatItHasReached) {
  const TestFolder folder;
  train(folder / "run");
  const RunSummary all = run_summary(folder / "run");
  EXPECT_EQ(all.step, 12);
  EXPECT_EQ(all.tokens, 12 * 8);
  EXPECT_EQ(all.valid_step, 12);
  EXPECT_EQ(all.valid_loss, 4);
  EXPECT_EQ(all.best_step, 10);
  EXPECT_EQ(all.best_valid_loss, 2);
  EXPECT_TRUE(std::isfinite(all.train_loss));
  // Without checkpoints metrics.jsonl says the same, without that file they do.
  const std::string metrics = read_file(folder / "run/metrics.jsonl");
  std::filesystem::remove(folder / "run/metrics.jsonl");
  const RunSummary saved = run_summary(folder / "run");
  std::ofstream(folder / "run/metrics.jsonl") << metrics;
  std::filesystem::remove_all(folder / "run/checkpoints");
  const RunSummary measured = run_summary(folder / "run");
  for (const RunSummary& one : {saved, measured}) {
    EXPECT_EQ(one.step, 12);
    EXPECT_EQ(one.tokens, 12 * 8);
    EXPECT_EQ(one.best_step, 10);
    EXPECT_EQ(one.best_valid_loss, 2);
    EXPECT_EQ(one.valid_loss, 4);
    EXPECT_DOUBLE_EQ(one.train_loss, all.train_loss);
  }
}

TEST(RunSummary, OfEqualLossesTheFirstIsTheBest) {
  const TestFolder folder;
  write_model_files(folder / "run", {});
  ToyObjective objective;
  objective.validation_loss = [](index) { return 2.0; };
  TrainingObserver silent;
  const TrainOptions options{.stop_after = "15u", .eval_every = "5u"};
  Trainer(Context(1), objective, silent,
          {.options = options, .folder = folder / "run", .identity = {}, .attachments = {}})
      .run();
  EXPECT_EQ(run_summary(folder / "run").best_step, 5);
}

TEST(RunSummary, OfACheckpointIsWhereItStands) {
  const TestFolder folder;
  train(folder / "run");
  const RunSummary summary = run_summary(folder / "run/checkpoints/step-000008");
  EXPECT_EQ(summary.step, 8);
  EXPECT_EQ(summary.best_step, 5);
  EXPECT_EQ(summary.valid_loss, 3);
}

TEST(RunSummary, OfAModelAloneIsEmpty) {
  const TestFolder folder;
  train(folder / "run");
  std::filesystem::remove_all(folder / "run/checkpoints");
  std::filesystem::remove(folder / "run/metrics.jsonl");
  const RunSummary summary = run_summary(folder / "run");
  EXPECT_EQ(summary.step, 0);
  EXPECT_EQ(summary.best_step, -1);
  EXPECT_TRUE(std::isnan(summary.best_valid_loss));
}

}  // namespace
}  // namespace fovea
