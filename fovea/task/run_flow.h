// SPDX-License-Identifier: Apache-2.0
// The flow of every training: its files, its objective, its trainer; and what it costs, in updates,
// FLOPs, memory and time. What a kind of model has of its own is TaskOf<Run>, in its train.cc,
// which instantiates the functions of run.h with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/machine.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/objective.h"
#include "fovea/task/run.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/options.h"
#include "fovea/train/update_rule.h"

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
  double state = 0;      ///< of the optimizer, as a checkpoint holds it
  double gradients = 0;  ///< of an update, and what the optimizer takes besides its state
  double passes = 0;     ///< tape, packed copies and scratch, at their largest
  double batches = 0;    ///< of an update
  double records = 0;    ///< history, and the files of the vocabulary
  double rounded = 0;    ///< values of --save-dtype bf16, while they are written
};

/// What these add to the memory of the process while updates run.
double added_by_training(const TrainingBytes& bytes);
/// The most bytes that this process will have resident while it trains. `checkpoint_bytes`: the
/// part of the memory held now that is the checkpoint to resume from.
double peak_of_training(const TrainingBytes& bytes, index checkpoint_bytes);

/// A table, of which an update uses some rows.
struct UsedTable {
  index rows = 0, width = 0;
  index used = 0;       ///< at most
  bool frozen = false;  ///< has no gradient
};

/// Bytes of the gradients of an update: of a table those of its used rows alone, where the
/// optimizer goes by rows.
double gradient_bytes(OptimizerKind optimizer, index parameters, std::span<const UsedTable> tables);

/// How many heads of attention are observed.
struct ObservedHeads {
  index layers = 0;
  index heads = 0;  ///< of all these layers
};

/// The observed heads of all layers with attention.
ObservedHeads observed_heads(const std::vector<SizedStage>& stages);
template <class Config>
ObservedHeads observed_heads(const Config& config) {
  if (config.has_base()) return {config.base.layers, config.base.layers * config.heads};
  return observed_heads(sized_stages(resolve(config)));
}

/// Bytes of the history of so many updates.
double record_bytes(const TrainOptions& recipe, index updates, ObservedHeads observed);

/// Bytes of the files of a tokenizer, or of none.
double vocabulary_bytes(const TokenizerData& tokenizer);
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

// ---- what a kind of model says

/// Bytes of a training that its kind alone knows.
struct OwnBytes {
  double gradients = 0;
  double batches = 0;
  double vocabulary = 0;
  index frozen = 0;  ///< parameters that are trained in the plan of the model, but not by the run
  double more = 0;   ///< of validations, beside the tape
  /// Of a run that trains adapters and leaves the model as it is.
  struct Adapters {
    double model = 0;   ///< bytes of the weights of the model, and of the adapters
    index trained = 0;  ///< values of the adapters
  };
  std::optional<Adapters> adapters = {};
};

/// The bytes of a run, or, if it has adapters of an encoder, beside which the head is trained,
/// those of these.
template <class Run>
OwnBytes with_adapters(const Run& run, OwnBytes own) {
  if (run.adapters.row == nullptr) return own;
  const index added = run.adapters.values;
  const index trained = parameter_count(run.settings.model) - run.frozen + added;
  own.adapters = {
      .model = model_memory(run.settings.model) + sizeof(float) * static_cast<double>(added),
      .trained = trained};
  own.gradients = gradient_bytes(run.settings.recipe.optimizer, trained, {});
  own.frozen = 0;
  return own;
}

/// How many tokens, words or time steps there are.
struct RowCounts {
  double of_update = 1;  ///< of the mean one
  double evaluated = 0;  ///< of an evaluation, all its sets together
};

/// The functions that the flow needs for a kind of model. Each has
///
///   using Objective                    an ObjectiveOf<Run, ...>
///   files(run)                         of its folder, besides those of numbers
///   make(run)                          its model, which begins as its seed says
///   tokens(run)                        of the largest batch
///   load(set, mode, run)               of the largest batch of a set, for plan_pass()
///   plan(context, run, load)           if it is there: what plan_pass() says of this run's model
///   bytes(context, run)                OwnBytes
///   rows(run)                          RowCounts
///   flops(context, run)                of the mean update, by a plan of sequences as long as those
///                                      of the data
template <class Run>
struct TaskOf;

// ---- cost

template <Prepared Run>
RunCost cost_of(const Run& run) {
  const TrainOptions& recipe = run.settings.recipe;
  const Horizon horizon(parse_length(recipe.stop_after, "--stop-after"),
                        run.training->updates_per_epoch());
  return {.parameters = parameter_count(run.settings.model),
          .updates = horizon.updates(),
          .tokens_per_update = TaskOf<Run>::tokens(run) * recipe.accumulate};
}

template <Prepared Run>
double flops_of_update(const Context& context, const Run& run) {
  return TaskOf<Run>::flops(context, run);
}

/// The load of a batch, but for its tokens.
template <class Run>
TapeLoad batch_load(const Run& run, TapeMode mode) {
  const TrainOptions& recipe = run.settings.recipe;
  return {.mode = mode,
          .observes = mode == TapeMode::kTrain && recipe.observe_every > 0,
          .precision = recipe.precision,
          .inner = inner_results(recipe)};
}

/// The cost of forward and backward, at its largest. One tape serves updates and evaluations in
/// turn, and so does the scratch memory; neither is ever the other. Packed forms that only
/// evaluations need are kept for the next evaluation.
template <class Run>
PassCost pass_cost(const Context& context, const Run& run) {
  const auto cost_of_set = [&](const auto& set, TapeMode mode) {
    const auto load = TaskOf<Run>::load(set, mode, run);
    if constexpr (requires { TaskOf<Run>::plan(context, run, load); }) {
      return TaskOf<Run>::plan(context, run, load);
    } else {
      return plan_pass(context, run.settings.model, load);
    }
  };
  PassCost cost = cost_of_set(*run.training, TapeMode::kTrain);
  for (const auto* set : {&run.validation, &run.trained}) {
    if (*set) cost = larger_of_each(cost, cost_of_set(**set, TapeMode::kInference));
  }
  return cost;
}

template <Prepared Run>
TrainingBytes training_bytes(const Context& context, const Run& run) {
  const auto& model = run.settings.model;
  const double records =
      record_bytes(run.settings.recipe, cost_of(run).updates, observed_heads(model));
  const OwnBytes own = TaskOf<Run>::bytes(context, run);
  const OptimizerKind optimizer = run.settings.recipe.optimizer;
  const PassCost passes = pass_cost(context, run);
  const index values = own.adapters ? own.adapters->trained : parameter_count(model);
  // What is frozen besides is taken to be of all kinds.
  const auto& of_kinds = passes.sizes.values;
  const double planned = std::accumulate(of_kinds.begin(), of_kinds.end(), 0.0);
  const double trained = 1 - static_cast<double>(own.frozen) / std::max(planned, 1.0);
  const bool rounds = run.settings.recipe.save_dtype == Precision::kBFloat16;
  const double rounded = rounds ? sizeof(BFloat16) * static_cast<double>(values) : 0;
  return {.model = own.adapters ? own.adapters->model : model_memory(model),
          .values = sizeof(float) * static_cast<double>(values),
          .state = trained * state_bytes(optimizer, passes.sizes),
          .gradients = own.gradients + update_bytes(optimizer, passes.sizes),
          .passes = passes.bytes() + own.more,
          .batches = own.batches,
          .records = records + own.vocabulary,
          .rounded = rounded};
}

template <Prepared Run>
double training_memory(const Context& context, const Run& run, index checkpoint_bytes) {
  return peak_of_training(training_bytes(context, run), checkpoint_bytes);
}

template <Prepared Run>
double added_memory(const Context& context, const Run& run) {
  return added_by_training(training_bytes(context, run));
}

/// Forward alone is a third of forward and backward.
template <Prepared Run>
double updates_to_come(const Run& run, const RunState& done) {
  const index updates = cost_of(run).updates;
  const auto left = static_cast<double>(std::max<index>(updates - done.step, 0));
  if (!run.validation || done.step >= updates) return left;
  const index evaluations = evaluations_to_come(run.settings.recipe, updates,
                                                run.training->updates_per_epoch(), done.step);
  const RowCounts rows = TaskOf<Run>::rows(run);
  return left + static_cast<double>(evaluations) * rows.evaluated / (3 * rows.of_update);
}

template <Prepared Run>
RunTime estimate_run_time(const Context& given, const Run& run, const RunState& done) {
  const Context context = given.with(run.settings.recipe.precision);
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const auto model = TaskOf<Run>::make(run);
    typename TaskOf<Run>::Objective objective(context, model, run);
    use(objective);
  };
  const auto fits = [&] {
    return training_memory(context, run) <= static_cast<double>(reachable_memory().bytes);
  };
  return estimate_time(context,
                       {.recipe = run.settings.recipe,
                        .parameters = parameter_count(run.settings.model),
                        .flops_of_update = [&] { return flops_of_update(context, run); },
                        .updates_to_come = [&] { return updates_to_come(run, done); },
                        .fits = fits,
                        .with_objective = with_objective},
                       done);
}

// ---- training

/// The files of a model folder and of each checkpoint besides those of numbers.
inline std::vector<NamedFile> first_files(const std::string& config,
                                          const TokenizerData& tokenizer) {
  std::vector<NamedFile> files = {{"config.json", config}, {"tokenizer.txt", to_text(tokenizer)}};
  if (tokenizer.kind == kWordKind) {
    files.push_back({std::string(kWordListName), word_list_text(tokenizer)});
  }
  return files;
}

/// A run with its model, in its folder.
template <class Run>
class RunTraining {
 public:
  /// Writes the files of a new run.
  RunTraining(const Context& context, const Run& run, std::filesystem::path folder, StartAt start)
      : run_(run),
        folder_(std::move(folder)),
        start_(std::move(start)),
        files_(begin()),
        context_(context.with(run.settings.recipe.precision)),
        model_(TaskOf<Run>::make(run)),
        objective_(context_, model_, run) {}

  typename TaskOf<Run>::Objective& objective() { return objective_; }

  /// Trains to the end of the run. The checkpoint to start from, as large as the model and its
  /// moments, is freed before.
  TrainResult train(const TrainOptions& recipe, TrainingObserver& observer) {
    Trainer trainer(
        context_, objective_, observer,
        {.options = recipe, .folder = folder_, .identity = run_.identity, .attachments = files_});
    if (start_.checkpoint) {
      trainer.resume(*start_.checkpoint, start_.future);
      start_.checkpoint.reset();
    } else if (start_.resume) {
      trainer.resume();
    }
    return trainer.run();
  }

 private:
  std::vector<NamedFile> begin() const {
    std::vector<NamedFile> files = TaskOf<Run>::files(run_);
    if (!start_.resume) write_model_files(folder_, files);
    return files;
  }

  const Run& run_;
  const std::filesystem::path folder_;
  StartAt start_;
  const std::vector<NamedFile> files_;
  const Context context_;
  const decltype(TaskOf<Run>::make(std::declval<const Run&>())) model_;
  typename TaskOf<Run>::Objective objective_;
};

}  // namespace fovea
