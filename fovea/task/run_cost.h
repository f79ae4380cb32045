// SPDX-License-Identifier: Apache-2.0
// The cost that the trainings of all kinds of models share: updates, memory and time. A Run has
// settings (model, text, recipe), training and validation; cost_of(run) and
// training_memory(context, run) are those of its kind.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "fovea/base/machine.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/memory_parts.h"
#include "fovea/task/run_time_parts.h"
#include "fovea/train/stop_after.h"

namespace fovea {

template <class Run>
RunCost cost_of_updates(const Run& run, double flops_per_update) {
  const TrainOptions& recipe = run.settings.recipe;
  const Horizon horizon(parse_length(recipe.stop_after, "--stop-after"),
                        run.training->updates_per_epoch());
  return {.parameters = parameter_count(run.settings.model),
          .updates = horizon.updates(),
          .tokens_per_update = run.training->largest_batch() * recipe.accumulate,
          .flops_per_update = flops_per_update};
}

/// Bytes of the values of a model: its parameters, and the table of positions if it is not learned.
template <class Config>
double value_bytes(const Config& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return sizeof(float) * (static_cast<double>(parameter_count(config)) + table);
}

/// Bytes of forward and backward, at their largest. One tape serves updates and evaluations in
/// turn, and so does the scratch memory; neither is ever the other. Packed forms that only
/// evaluations need are kept for the next evaluation.
template <class Config, class Load>
double pass_bytes(const Context& context, const Config& config, const Load& update,
                  const std::optional<Load>& evaluation) {
  const PassBytes one = plan_pass(context, config, update);
  if (!evaluation) return one.all();
  return larger_of_each(one, plan_pass(context, config, *evaluation)).all();
}

/// Bytes of a training that its kind alone knows.
struct OwnBytes {
  double gradients = 0;
  double passes = 0;
  double batches = 0;
  double vocabulary = 0;
  index frozen = 0;  ///< parameters
};

/// See peak_of_training().
template <class Run>
double peak_of_run(const Run& run, const OwnBytes& own, index checkpoint_bytes) {
  const auto& model = run.settings.model;
  const double records = record_bytes(run.settings.recipe, cost_of(run).updates,
                                      observed_heads(sized_stages(resolve(model))));
  return peak_of_training({.model = value_bytes(model),
                           .values = sizeof(float) * static_cast<double>(parameter_count(model)),
                           .frozen = sizeof(float) * static_cast<double>(own.frozen),
                           .gradients = own.gradients,
                           .passes = own.passes,
                           .batches = own.batches,
                           .records = records + own.vocabulary},
                          checkpoint_bytes);
}

/// How many tokens, words or time steps there are.
struct RowCounts {
  double of_update = 1;  ///< of the mean one
  double evaluated = 0;  ///< of an evaluation, all its sets together
};

/// Updates after `done` of them, and evaluations as the updates that take as long: forward alone is
/// a third of forward and backward.
template <class Run>
double updates_left(const Run& run, const RowCounts& rows, index done) {
  const index updates = cost_of(run).updates;
  const auto left = static_cast<double>(std::max<index>(updates - done, 0));
  if (!run.validation || done >= updates) return left;
  const index evaluations =
      evaluations_to_come(run.settings.recipe, updates, run.training->updates_per_epoch(), done);
  return left + static_cast<double>(evaluations) * rows.evaluated / (3 * rows.of_update);
}

/// See estimate_time(). `with_objective` calls what it is given with an objective of a new model.
template <class Run>
RunTime time_of_run(const Context& context, const Run& run, const RowCounts& rows,
                    std::function<void(const std::function<void(Objective&)>&)> with_objective,
                    const RunState& done) {
  const auto fits = [&] {
    return training_memory(context, run) <= static_cast<double>(reachable_memory().bytes);
  };
  return estimate_time(context,
                       {.recipe = run.settings.recipe,
                        .cost = cost_of(run),
                        .updates_to_come = [&] { return updates_left(run, rows, done.step); },
                        .fits = fits,
                        .with_objective = std::move(with_objective)},
                       done);
}

}  // namespace fovea
