// SPDX-License-Identifier: Apache-2.0
// The cost of a training of a classifier: updates, FLOPs, memory and time.
#include <algorithm>
#include <vector>

#include "fovea/model/pass_plan.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/objective.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/run_cost.h"

namespace fovea {

namespace {

// The rows of a batch of so many tokens or time steps.
index rows_of(const ClassifierConfig& config, index tokens) {
  return tokens * std::max<index>(config.joints, 1);
}

template <class Set>
TextLoad load_of(const Set& set, TapeMode mode, const ClassifierRun& run) {
  TextLoad load{.texts = run.settings.text.batch_size, .tape = batch_load(run, mode)};
  load.tape.tokens = rows_of(run.settings.model, set.largest_batch());
  load.tape.sequences = load.texts;
  return load;
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

double update_gradients(const ClassifierRun& run) {
  const ClassifierConfig& c = run.settings.model;
  const index tokens = run.settings.recipe.accumulate * run.training->largest_batch();
  const UsedTable tables[] = {{c.vocabulary, c.width, tokens, c.freeze_embeddings},
                              {c.buckets, c.ngram_width, (c.ngrams - 1) * tokens}};
  return gradient_bytes(parameter_count(c), tables);
}

double tokens_in(const Examples& examples) { return static_cast<double>(examples.stream.size()); }

double tokens_of_update(const ClassifierRun& run) {
  return tokens_in(run.training->examples()) /
         static_cast<double>(run.training->updates_per_epoch());
}

RowCounts row_counts(const ClassifierRun& run) {
  RowCounts rows{.of_update = tokens_of_update(run)};
  if (run.validation) rows.evaluated = tokens_in(run.validation->examples());
  if (run.settings.recipe.evaluate_training) rows.evaluated += tokens_in(run.training->examples());
  return rows;
}

}  // namespace

RunCost cost_of(const ClassifierRun& run) {
  if (run.linear) return linear_cost(run);
  return cost_of_updates(run, run.training->largest_batch());
}

// Attention takes time with the square of each length, the last layer for each text.
double flops_of_update(const Context& context, const ClassifierRun& run) {
  if (run.linear) return 0;
  const Examples& examples = run.training->examples();
  std::vector<index> lengths;
  for (index i = 0; i < examples.size(); ++i) lengths.push_back(examples.length(i));
  TextLoad load = load_of(*run.training, TapeMode::kTrain, run);
  load.tape = LengthGroups(lengths).load_of(load.tape, lengths);
  load.texts = static_cast<index>(load.tape.lengths.size());
  const index tokens = load.tape.tokens;
  load.tape.tokens = rows_of(run.settings.model, tokens);
  return plan_pass(context, run.settings.model, load).flops * tokens_of_update(run) /
         static_cast<double>(tokens);
}

double training_memory(const Context& context, const ClassifierRun& run, index checkpoint_bytes) {
  if (run.linear) return linear_memory(context, run);
  return peak_of_run(
      run,
      {.gradients = update_gradients(run),
       .passes = pass_bytes(
           context, run, [&](const auto& set, TapeMode mode) { return load_of(set, mode, run); }),
       .batches = batch_bytes(run),
       .vocabulary = vocabulary_bytes(run.tokenizer.get()),
       .frozen = frozen_count(run.settings.model)},
      checkpoint_bytes);
}

RunTime estimate_run_time(const Context& context, const ClassifierRun& run, const RunState& done) {
  if (run.linear) return linear_time(context, run);
  return time_of_run(context, run, row_counts(run), done);
}

}  // namespace fovea
