// SPDX-License-Identifier: Apache-2.0
// The cost that the trainings of all kinds of models share: updates, FLOPs, memory and time. A Run
// has settings (model, text, recipe), training and validation; cost_of(run), flops_of_update(
// context, run) and training_memory(context, run) are those of its kind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/training_task.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"

namespace fovea {

// ---- bytes

/// For code and tables of kernels that have not run yet, and for the rounding of the allocator.
inline constexpr double kProcessBytes = 6 << 20;
/// Large buffers end inside a page of 2 MB, and the last block of an arena is not full.
inline constexpr double kRounding = 1.02;

/// Bytes of the parts of a training.
struct TrainingBytes {
  double model = 0;      ///< values of the parameters, and fixed tables
  double values = 0;     ///< values of the parameters alone
  double frozen = 0;     ///< of these, the values that are not trained and have no moments
  double gradients = 0;  ///< of an update, and what the optimizer keeps besides the moments
  double passes = 0;     ///< tape, packed copies and scratch, at their largest
  double batches = 0;    ///< of an update
  double records = 0;    ///< history, and the files of the vocabulary
};

/// The most bytes that this process will have resident while it trains. `checkpoint_bytes`: the
/// part of the memory held now that is the checkpoint to resume from.
double peak_of_training(const TrainingBytes& bytes, index checkpoint_bytes);

/// A table, of which an update uses some rows.
struct UsedTable {
  index rows = 0, width = 0;
  index used = 0;       ///< at most
  bool frozen = false;  ///< has no gradient
};

/// Bytes of the gradients of an update: of a table those of its used rows alone.
double gradient_bytes(index parameters, std::span<const UsedTable> tables);

/// How many heads of attention are observed.
struct ObservedHeads {
  index layers = 0;
  index heads = 0;  ///< of all these layers
};

/// The observed heads of all layers with attention.
ObservedHeads observed_heads(const std::vector<SizedStage>& stages);
template <class Config>
ObservedHeads observed_heads(const Config& config) {
  return observed_heads(sized_stages(resolve(config)));
}

/// Bytes of the history of so many updates.
double record_bytes(const TrainOptions& recipe, index updates, ObservedHeads observed);

/// Bytes of the files of a tokenizer of words, or of none.
double vocabulary_bytes(const Tokenizer* tokenizer);

// ---- FLOPs

/// Sequences that stand for all those of an epoch: in the order of their lengths, groups of as many
/// neighbours.
class LengthGroups {
 public:
  explicit LengthGroups(const std::vector<index>& lengths);

  /// The mean of each group, at least 1, of the lengths or of another number of each sequence.
  std::vector<std::int32_t> means_of(const std::vector<index>& numbers) const;
  /// The load of a batch that has a sequence for each group, as long as its mean.
  TapeLoad load_of(TapeLoad load, const std::vector<index>& lengths) const;

 private:
  std::vector<index> order_;  // of the sequences
  index groups_;
};

// ---- time

/// How many evaluations a run of `updates` has after `done` of them.
index evaluations_to_come(const TrainOptions& recipe, index updates, index updates_per_epoch,
                          index done);

struct TimedRun {
  const TrainOptions& recipe;
  index parameters = 0;
  std::function<double()> flops_of_update;
  /// Updates that are still to be done, evaluations counted as the updates that take as long.
  std::function<double()> updates_to_come;
  std::function<bool()> fits;  ///< whether the run fits into memory, so that updates can be tried
  /// Calls the function with an objective of a new model.
  std::function<void(const std::function<void(Objective&)>&)> with_objective;
};

/// The time after `done`. Tries updates where these are short, else reckons from measured speeds.
RunTime estimate_time(const Context& context, const TimedRun& run, const RunState& done);

// ---- of a run of any kind

template <class Run>
RunCost cost_of_updates(const Run& run, index tokens_of_batch) {
  const TrainOptions& recipe = run.settings.recipe;
  const Horizon horizon(parse_length(recipe.stop_after, "--stop-after"),
                        run.training->updates_per_epoch());
  return {.parameters = parameter_count(run.settings.model),
          .updates = horizon.updates(),
          .tokens_per_update = tokens_of_batch * recipe.accumulate};
}

/// Bytes of the values of a model: its parameters, and the table of positions if it is not learned.
template <class Config>
double model_memory(const Config& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return sizeof(float) * (static_cast<double>(parameter_count(config)) + table);
}

/// The load of a batch, but for its tokens.
template <class Run>
TapeLoad batch_load(const Run& run, TapeMode mode) {
  const TrainOptions& recipe = run.settings.recipe;
  return {.mode = mode,
          .observes = mode == TapeMode::kTrain && recipe.observe_every > 0,
          .precision = recipe.precision};
}

/// Bytes of forward and backward, at their largest, where load_of(set, mode) is the load of the
/// largest batch. One tape serves updates and evaluations in turn, and so does the scratch memory;
/// neither is ever the other. Packed forms that only evaluations need are kept for the next
/// evaluation.
template <class Run, class LoadOf>
double pass_bytes(const Context& context, const Run& run, const LoadOf& load_of) {
  const auto& model = run.settings.model;
  PassCost cost = plan_pass(context, model, load_of(*run.training, TapeMode::kTrain));
  const auto add = [&](const auto& set) {
    if (!set) return;
    cost = larger_of_each(cost, plan_pass(context, model, load_of(*set, TapeMode::kInference)));
  };
  add(run.validation);
  if constexpr (requires { run.trained; }) add(run.trained);
  return cost.bytes();
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
  const double records =
      record_bytes(run.settings.recipe, cost_of(run).updates, observed_heads(model));
  return peak_of_training({.model = model_memory(model),
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

/// See estimate_time(). make_model(run) and make_objective(context, model, run) are those of the
/// task.
template <class Run>
RunTime time_of_run(const Context& given, const Run& run, const RowCounts& rows,
                    const RunState& done) {
  const Context context = given.with(run.settings.recipe.precision);
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const auto model = make_model(run);
    auto objective = make_objective(context, model, run);
    use(objective);
  };
  const auto fits = [&] {
    return training_memory(context, run) <= static_cast<double>(reachable_memory().bytes);
  };
  return estimate_time(context,
                       {.recipe = run.settings.recipe,
                        .parameters = parameter_count(run.settings.model),
                        .flops_of_update = [&] { return flops_of_update(context, run); },
                        .updates_to_come = [&] { return updates_left(run, rows, done.step); },
                        .fits = fits,
                        .with_objective = with_objective},
                       done);
}

}  // namespace fovea
