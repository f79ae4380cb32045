// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <fstream>

#include "fovea/base/file.h"
#include "fovea/task/report/run_page.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
#include "tests/support/throws.h"
#include "tests/task/classify/tiny.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

std::filesystem::path train(const TestFolder& folder, const char* name, bool exact) {
  ClassifierSettings settings = tiny_classifier(folder);
  settings.recipe.evaluate_training = exact;
  settings.recipe.log_every = 5;
  const std::filesystem::path output = folder / name;
  std::filesystem::create_directories(output);
  TrainingObserver silent;
  train_classifier(Context(1), prepare_run(settings), output, {}, silent);
  return output;
}

TEST(ReportOfRun, HasTheCurvesOfAClassifier) {
  const TestFolder folder;
  const RunReport report = report_of_run(train(folder, "run", true), "run");
  EXPECT_EQ(report.unit.english, "nats per text");
  EXPECT_EQ(report.updates, 60);
  EXPECT_EQ(report.losses.running_mean.size(), 12u);
  EXPECT_EQ(report.losses.validation.size(), 3u);
  EXPECT_EQ(report.losses.training.size(), 3u);
  ASSERT_EQ(report.metrics.size(), 2u);
  ASSERT_EQ(report.training_metrics.size(), 2u);
  EXPECT_EQ(report.training_metrics[0].name, "accuracy");
  EXPECT_EQ(report.training_metrics[0].points.back().y, 1);  // it has learned them
  ASSERT_EQ(report.running_metrics.size(), 1u);
  EXPECT_EQ(report.running_metrics[0].name, "accuracy");
  EXPECT_EQ(report.running_metrics[0].points.size(), 12u);
  EXPECT_EQ(report.interval_metrics.at(0).points.back().y,
            report.running_metrics[0].points.back().y);
  EXPECT_FALSE(report.is_running);
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.environment.at(2).name.english, "processor");
  EXPECT_FALSE(report.data.at(0).value.empty());
}

// Only the records differ: the option changes no weight.
TEST(ReportOfRun, EvaluatingTheTrainingSetChangesNothing) {
  const TestFolder folder;
  const auto weights = [](const std::filesystem::path& run) {
    return safetensors_bytes(read_model_weights(run).tensors);
  };
  const std::filesystem::path with = train(folder, "with", true),
                              without = train(folder, "without", false);
  EXPECT_EQ(weights(with), weights(without));
  EXPECT_TRUE(report_of_run(without, "run").losses.training.empty());
}

TEST(ReportOfRun, OfALanguageModelIsInTokens) {
  const TestFolder folder;
  LanguageModelSettings settings = tiny_settings(folder);
  settings.recipe.evaluate_training = true;
  settings.recipe.observe_every = 10;
  const std::filesystem::path run = folder / "run";
  std::filesystem::create_directories(run);
  TrainingObserver silent;
  train_language_model(Context(1), prepare_run(settings), run, {}, silent);
  const RunReport report = report_of_run(run, "a\u202Eb");
  EXPECT_EQ(report.name, "a\\u{202E}b");
  EXPECT_EQ(report.unit.english, "nats per token");
  EXPECT_EQ(report.losses.training.size(), 3u);
  EXPECT_EQ(report.entropy.size(), 1u);
  EXPECT_EQ(report.entropy[0].size(), 2u);
  EXPECT_EQ(report.entropy[0][1].size(), 3u);
}

TEST(ReportOfRun, SaysWhatCannotBeRead) {
  const TestFolder folder;
  const std::filesystem::path run = train(folder, "run", false);
  std::ofstream(run / "metrics.jsonl", std::ios::app) << "{}\n{\"kind\":\"update\",\"st";
  const auto notes = [&] {
    std::string all;
    for (const Phrase& note : report_of_run(run, "run").notes) all += std::string(note.english);
    return all;
  };
  EXPECT_THAT(notes(), testing::HasSubstr("some lines of metrics.jsonl cannot be read"));
  EXPECT_THAT(notes(), testing::HasSubstr("the last line of metrics.jsonl is incomplete"));
  {
    const RunLock lock(run);  // a line that is being written is no damage
    EXPECT_THAT(notes(), testing::Not(testing::HasSubstr("incomplete")));
    EXPECT_TRUE(report_of_run(run, "run").is_running);
  }
  std::filesystem::remove(run / "metrics.jsonl");
  EXPECT_THAT(notes(), testing::HasSubstr("there is no history"));
}

TEST(ReportOfRun, ShowsWhatChangedWhenItWasResumed) {
  const TestFolder folder;
  const std::filesystem::path run = train(folder, "run", false);
  ClassifierSettings settings = tiny_classifier(folder);
  settings.recipe.stop_after = "80u";
  TrainingObserver silent;
  train_classifier(Context(1), prepare_run(settings), run, {.resume = true}, silent);
  const RunReport report = report_of_run(run, "run");
  EXPECT_THAT(report.resumed, testing::ElementsAre(60));
  for (const ReportSetting& one : report.settings) {
    if (one.name == "recipe.stop_after") {
      EXPECT_EQ(one.began, "60u");
      EXPECT_EQ(one.now, "80u");
    }
  }
}

TEST(ReportOfRun, RefusesWhatIsNoModel) {
  const TestFolder folder;
  EXPECT_THROWS(report_of_run(folder / "none", "none"), kModelMissing, "none");
  const std::filesystem::path run = train(folder, "run", false);
  std::ofstream(run / "config.json", std::ios::app) << " ";
  EXPECT_THROWS(report_of_run(run, "run"), kModelDamaged, "config.json");
}

}  // namespace
}  // namespace fovea
