// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "fovea/base/machine.h"
#include "fovea/base/profile.h"
#include "fovea/model/classifier.h"
#include "fovea/task/classify/run.h"
#include "tests/task/classify/tiny.h"

namespace fovea {
namespace {

TEST(ClassifierCost, IsThatOfTheRun) {
  const TestFolder folder;
  const ClassifierRun run = prepare_run(tiny_classifier(folder));
  const RunCost cost = cost_of(run);
  EXPECT_EQ(cost.updates, 60);
  EXPECT_EQ(cost.parameters, parameter_count(run.settings.model));
  EXPECT_EQ(cost.tokens_per_update, 8 * 7);
  EXPECT_GT(estimate_run_time(Context(1), run).seconds, 0);
}

TEST(ClassifierCost, CountsParametersWithGradientsMomentsAndACheckpoint) {
  const TestFolder folder;
  ClassifierSettings settings = tiny_classifier(folder);
  settings.model.width = 1 << 20;
  const ClassifierRun run = prepare_run(settings);
  const double bytes = training_memory(Context(1), run);
  EXPECT_GT(bytes, 4.0 * 7 * static_cast<double>(parameter_count(run.settings.model)));
}

// One long text among many short ones: attention takes time with the square of each length.
TEST(ClassifierCost, CountsTextsAsLongAsTheyAre) {
  const TestFolder folder;
  ClassifierSettings settings = tiny_classifier(folder);
  settings.model.encoder = "gru,attention";
  settings.model.heads = 2;
  settings.text.train.push_back(write_file(
      folder, "long.tsv", "good\t" + [] {
        std::string text;
        for (int i = 0; i < 400; ++i) text += "fine ";
        return text;
      }() + "\n"));
  const ClassifierRun run = prepare_run(settings);
  Profile profile;
  const Classifier model(run.settings.model, 1);
  ClassifierObjective objective(Context(1).profiled(profile), model, run);
  const index updates = run.training->updates_per_epoch();
  for (index update = 0; update < updates; ++update) {
    objective.begin_update(update);
    objective.forward(0);
    objective.backward();
  }
  double flops = 0;
  for (const Profile::Part& part : profile.parts()) flops += part.work.flops;
  EXPECT_NEAR(flops_of_update(Context(1), run) * static_cast<double>(updates) / flops, 1, 0.02);
}

}  // namespace
}  // namespace fovea
