// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "fovea/base/machine.h"
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
  settings.model.encoder = "attention";
  settings.model.heads = 2;
  settings.text.train.push_back(write_file(
      folder, "long.tsv", "good\t" + [] {
        std::string text;
        for (int i = 0; i < 400; ++i) text += "fine ";
        return text;
      }() + "\n"));
  const ClassifierRun run = prepare_run(settings);
  const ClassifierConfig& model = run.settings.model;
  const double tokens = static_cast<double>(run.training->examples().stream.size()) /
                        static_cast<double>(run.training->updates_per_epoch());
  double squares = 0;
  for (index i = 0; i < run.training->examples().size(); ++i) {
    squares += std::pow(static_cast<double>(run.training->examples().length(i)), 2);
  }
  const double mean = squares / static_cast<double>(run.training->examples().stream.size());
  ASSERT_LT(mean, 0.8 * static_cast<double>(model.block));
  ClassifierConfig longest = model, typical = model;
  typical.block = static_cast<index>(std::lround(mean));
  EXPECT_DOUBLE_EQ(cost_of(run).flops_per_update, flops_per_token(typical) * tokens);
  EXPECT_LT(cost_of(run).flops_per_update, flops_per_token(longest) * tokens);
}

}  // namespace
}  // namespace fovea
