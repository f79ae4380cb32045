// SPDX-License-Identifier: Apache-2.0
// What a training of a classifier costs: updates, FLOPs, memory and time.
#include <algorithm>

#include "fovea/base/machine.h"
#include "fovea/model/classifier_memory.h"
#include "fovea/task/classify/objective.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/memory_parts.h"
#include "fovea/task/run_time_parts.h"

namespace fovea {

namespace {

double tape_bytes(const Context& context, const ClassifierConfig& config, const TextLoad& load) {
  return activation_bytes(config, load) + scratch_bytes(context, config, load);
}

// The rows of a batch of so many tokens or time steps.
index rows_of(const ClassifierConfig& config, index tokens) {
  return tokens * std::max<index>(config.joints, 1);
}

// One tape serves updates and evaluations in turn. Packed forms that only evaluations need are kept
// for the next evaluation.
double passes_bytes(const Context& context, const ClassifierRun& run) {
  const ClassifierConfig& config = run.settings.model;
  const index texts = run.settings.text.batch_size;
  const TextLoad update{texts,
                        {rows_of(config, run.training->largest_batch()), TapeMode::kTrain,
                         run.settings.recipe.observe_every > 0, texts}};
  const double trained = tape_bytes(context, config, update), packed = packed_bytes(config, update);
  if (!run.validation) return trained + packed;
  const TextLoad evaluation{
      texts,
      {rows_of(config, run.validation->largest_batch()), TapeMode::kInference, false, texts}};
  return std::max(trained, tape_bytes(context, config, evaluation)) +
         std::max(packed, packed_bytes(config, evaluation));
}

// Ids and targets of an update's batches, and the predictions of the validation set
// with their confusion matrix.
double batch_bytes(const ClassifierRun& run) {
  const ClassifierConfig& config = run.settings.model;
  const auto columns = static_cast<double>(config.classes);
  const double ids = sizeof(token) * static_cast<double>(run.settings.recipe.accumulate) *
                     static_cast<double>(run.training->largest_batch());
  const double values =
      sizeof(float) * columns *
      static_cast<double>(run.settings.recipe.accumulate * run.settings.text.batch_size);
  if (!run.validation) return ids + values;
  // A vector that grows exists twice; flags of what is true and predicted come beside it.
  const index trained = run.settings.recipe.evaluate_training ? run.training->examples().size() : 0;
  const auto texts = static_cast<double>(std::max(run.validation->examples().size(), trained));
  const bool has_matrix = config.task == ClassifierTask::kSingleLabel;
  const double confusion = has_matrix ? sizeof(index) * columns * columns : 0;
  return ids + values + confusion +
         texts * (columns * (3 * sizeof(float) + 2) + 2 * sizeof(double));
}

// The gradient of a table of which an update uses some rows: their values, which grow by half, and
// the place of each row in them.
double table_gradient_bytes(index rows, index width, index used) {
  const auto V = static_cast<double>(rows), U = std::min(V, static_cast<double>(used));
  const double held = std::min(V, 1.5 * U) + U;
  return 4 * (held * static_cast<double>(width) + 2 * V);
}

// Of an update of so many tokens.
double gradient_bytes(const ClassifierConfig& c, index tokens) {
  const double tables = static_cast<double>(c.vocabulary) * static_cast<double>(c.width) +
                        static_cast<double>(c.buckets) * static_cast<double>(c.ngram_width);
  const double of_tokens =
      c.freeze_embeddings ? 0 : table_gradient_bytes(c.vocabulary, c.width, tokens);
  return 4 * (static_cast<double>(parameter_count(c)) - tables) + of_tokens +
         table_gradient_bytes(c.buckets, c.ngram_width, (c.ngrams - 1) * tokens);
}

double tokens_in(const Examples& examples) { return static_cast<double>(examples.stream.size()); }

// Forward alone is a third of forward and backward.
double evaluation_updates(const ClassifierRun& run, const RunCost& cost, index done) {
  if (!run.validation || done >= cost.updates) return 0;
  const index per_epoch = run.training->updates_per_epoch();
  const index evaluations = evaluations_to_come(run.settings.recipe, cost.updates, per_epoch, done);
  const double of_update = tokens_in(run.training->examples()) / static_cast<double>(per_epoch);
  double tokens = tokens_in(run.validation->examples());
  if (run.settings.recipe.evaluate_training) tokens += tokens_in(run.training->examples());
  return static_cast<double>(evaluations) * tokens / (3 * of_update);
}

}  // namespace

RunCost cost_of(const ClassifierRun& run) {
  const index per_epoch = run.training->updates_per_epoch();
  const Horizon horizon(parse_length(run.settings.recipe.stop_after, "--stop-after"), per_epoch);
  RunCost cost;
  cost.parameters = parameter_count(run.settings.model);
  cost.updates = horizon.updates();
  cost.tokens_per_update = run.training->largest_batch() * run.settings.recipe.accumulate;
  cost.flops_per_update = flops_per_token(run.settings.model) *
                          static_cast<double>(std::max<index>(run.settings.model.joints, 1)) *
                          tokens_in(run.training->examples()) / static_cast<double>(per_epoch);
  return cost;
}

double model_memory(const ClassifierConfig& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return 4 * (static_cast<double>(parameter_count(config)) + table);
}

double training_memory(const Context& context, const ClassifierRun& run, index checkpoint_bytes) {
  const ClassifierConfig& config = run.settings.model;
  return peak_of_training({.model = model_memory(config),
                           .values = 4 * static_cast<double>(parameter_count(config)),
                           .frozen = 4 * static_cast<double>(frozen_count(config)),
                           .gradients = gradient_bytes(config, run.settings.recipe.accumulate *
                                                                   run.training->largest_batch()),
                           .passes = passes_bytes(context, run),
                           .batches = batch_bytes(run),
                           .records = record_bytes(run.settings.recipe, cost_of(run).updates,
                                                   observed_heads(sized_stages(config))) +
                                      vocabulary_bytes(run.tokenizer.get())},
                          checkpoint_bytes);
}

RunTime estimate_run_time(const Context& context, const ClassifierRun& run, const RunState& done) {
  const TrainOptions& recipe = run.settings.recipe;
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const Classifier model(run.settings.model, recipe.seed);
    ClassifierObjective objective(context, model,
                                  {.training = *run.training,
                                   .validation = nullptr,
                                   .class_weights = run.class_weights,
                                   .numbers = run.outputs.numbers,
                                   .frames = run.frames.rows(),
                                   .accumulate = recipe.accumulate,
                                   .seed = recipe.seed});
    use(objective);
  };
  const RunCost cost = cost_of(run);
  return estimate_time(
      context,
      {.recipe = recipe,
       .cost = cost,
       .updates_to_come =
           [&] {
             return static_cast<double>(std::max<index>(cost.updates - done.step, 0)) +
                    evaluation_updates(run, cost, done.step);
           },
       .fits =
           [&] {
             return training_memory(context, run) <= static_cast<double>(reachable_memory().bytes);
           },
       .with_objective = with_objective},
      done);
}

}  // namespace fovea
