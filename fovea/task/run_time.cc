// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/run_time.h"

#include <algorithm>

#include "fovea/base/machine.h"
#include "fovea/task/memory.h"
#include "fovea/task/objective.h"
#include "fovea/task/run_time_parts.h"

namespace fovea {

namespace {

// Forward alone is a third of forward and backward.
double evaluation_updates(const LanguageModelRun& run, const RunCost& cost, index done) {
  if (!run.validation || done >= cost.updates) return 0;
  const TrainOptions& recipe = run.settings.recipe;
  const index evaluations =
      evaluations_to_come(recipe, cost.updates, run.training->updates_per_epoch(), done);
  auto targets = static_cast<double>(run.validation->sequences().target_count());
  if (recipe.evaluate_training) {
    targets += static_cast<double>(run.training->sequences().stream.size());
  }
  return static_cast<double>(evaluations) * targets /
         static_cast<double>(3 * cost.tokens_per_update);
}

}  // namespace

double updates_to_come(const LanguageModelRun& run, const RunState& done) {
  const RunCost cost = cost_of(run);
  return static_cast<double>(std::max<index>(cost.updates - done.step, 0)) +
         evaluation_updates(run, cost, done.step);
}

RunTime estimate_run_time(const Context& context, const LanguageModelRun& run,
                          const RunState& done) {
  const TrainOptions& recipe = run.settings.recipe;
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const LanguageModel model(run.settings.model, recipe.seed);
    LanguageModelObjective objective(context, model,
                                     {.training = *run.training,
                                      .validation = nullptr,
                                      .accumulate = recipe.accumulate,
                                      .seed = recipe.seed});
    use(objective);
  };
  return estimate_time(context,
                       {.recipe = recipe,
                        .cost = cost_of(run),
                        .updates_to_come = [&] { return updates_to_come(run, done); },
                        .fits =
                            [&] {
                              return training_memory(context, run) <=
                                     static_cast<double>(reachable_memory().bytes);
                            },
                        .with_objective = with_objective},
                       done);
}

}  // namespace fovea
