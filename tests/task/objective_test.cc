// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/objective.h"

#include <gmock/gmock.h>

#include <cmath>

#include "fovea/train/optimizer.h"
#include "tests/task/tiny.h"

namespace fovea {
namespace {

class ObjectiveTest : public testing::Test {
 protected:
  // The loss and gradient norm of the first update, its sequences in `accumulate` batches.
  std::pair<double, double> first_update(index accumulate, std::string_view data) {
    LanguageModelSettings settings = tiny_settings(folder);
    settings.text.data = data;
    settings.text.batch_size = 12 / accumulate;
    settings.recipe.accumulate = accumulate;
    const LanguageModelRun run = prepare_run(settings);
    const LanguageModel model(run.settings.model, 1);
    LanguageModelObjective objective(
        context, model,
        {.training = *run.training, .validation = nullptr, .accumulate = accumulate, .seed = 1});
    targets = objective.begin_update(0);
    double loss = 0;
    for (index batch = 0; batch < accumulate; ++batch) {
      loss += objective.forward(batch);
      objective.backward();
    }
    return {loss, Optimizer(model.parameters()).gradient_norm(context)};
  }

  TestFolder folder;
  const Context context{2};
  index targets = 0;
};

// Spec T5: one batch of 12 is the mean of its parts, weighted by their tokens.
TEST_F(ObjectiveTest, AccumulatedBatchesAreOneBatch) {
  for (const std::string_view data : {"blocks", "lines"}) {
    const auto [loss, norm] = first_update(1, data);
    const index all = targets;
    EXPECT_NEAR(loss, std::log(280), 0.3);
    for (const index parts : {2, 3, 6}) {
      const auto [sum, norm_of_sum] = first_update(parts, data);
      EXPECT_EQ(targets, all);
      EXPECT_NEAR(sum, loss, 1e-6 * loss) << data;
      EXPECT_NEAR(norm_of_sum, norm, 1e-5 * norm) << data;
    }
  }
}

TEST_F(ObjectiveTest, ValidationIsTheMeanOverAllTargets) {
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  const LanguageModel model(run.settings.model, 1);
  const SetLoss loss = loss_of(context, model, *run.validation, {}).value();
  EXPECT_EQ(loss.targets, run.validation->sequences().target_count());
  // The same set in other batches is the same up to rounding.
  const EvaluationBatches ones(run.validation->sequences(), 1);
  EXPECT_NEAR(loss_of(context, model, ones, {})->mean(), loss.mean(), 1e-6 * loss.mean());
}

TEST_F(ObjectiveTest, ValidationCanBeInterrupted) {
  const LanguageModelRun run = prepare_run(tiny_settings(folder));
  const LanguageModel model(run.settings.model, 1);
  int asked = 0;
  EXPECT_FALSE(loss_of(context, model, *run.validation, [&] { return ++asked == 2; }));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace fovea
