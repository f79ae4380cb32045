// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

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

}  // namespace
}  // namespace fovea
