// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include "fovea/task/memory.h"
#include "fovea/task/objective.h"
#include "fovea/task/run_cost.h"

namespace fovea {

namespace {

RowCounts row_counts(const LanguageModelRun& run) {
  RowCounts rows{.of_update = static_cast<double>(cost_of(run).tokens_per_update)};
  if (run.validation) {
    rows.evaluated = static_cast<double>(run.validation->sequences().target_count());
  }
  if (run.settings.recipe.evaluate_training) {
    rows.evaluated += static_cast<double>(run.training->sequences().stream.size());
  }
  return rows;
}

}  // namespace

double updates_to_come(const LanguageModelRun& run, const RunState& done) {
  return updates_left(run, row_counts(run), done.step);
}

RunTime estimate_run_time(const Context& given, const LanguageModelRun& run, const RunState& done) {
  const TrainOptions& recipe = run.settings.recipe;
  const Context context = given.with(recipe.precision);
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const LanguageModel model(run.settings.model, recipe.seed);
    LanguageModelObjective objective(context, model,
                                     {.training = *run.training,
                                      .validation = nullptr,
                                      .accumulate = recipe.accumulate,
                                      .seed = recipe.seed});
    use(objective);
  };
  return time_of_run(context, run, row_counts(run), with_objective, done);
}

}  // namespace fovea
