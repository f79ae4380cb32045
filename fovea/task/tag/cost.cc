// SPDX-License-Identifier: Apache-2.0
// What a training of a tagger costs: updates, FLOPs, memory and time.
#include <algorithm>

#include "fovea/base/machine.h"
#include "fovea/model/tagger_memory.h"
#include "fovea/model/word_batch.h"
#include "fovea/task/memory_parts.h"
#include "fovea/task/run_time_parts.h"
#include "fovea/task/tag/objective.h"
#include "fovea/task/tag/run.h"

namespace fovea {

namespace {

template <class Set>
WordLoad load_of(const Set& set, TapeMode mode, const TaggerRun& run) {
  const bool trains = mode == TapeMode::kTrain;
  return {.tape = {.tokens = set.largest_batch(),
                   .mode = mode,
                   .observes = trains && run.settings.recipe.observe_every > 0,
                   .sequences = run.settings.text.batch_size},
          .characters = set.most_characters()};
}

double tape_bytes(const Context& context, const TaggerConfig& config, const WordLoad& load) {
  return activation_bytes(config, load) + scratch_bytes(context, config, load);
}

// One tape serves updates and evaluations in turn. Packed forms that only evaluations need are kept
// for the next evaluation.
double passes_bytes(const Context& context, const TaggerRun& run) {
  const TaggerConfig& config = run.settings.model;
  const WordLoad update = load_of(*run.training, TapeMode::kTrain, run);
  const double trained = tape_bytes(context, config, update), packed = packed_bytes(config, update);
  if (!run.validation) return trained + packed;
  const WordLoad evaluation = load_of(*run.validation, TapeMode::kInference, run);
  return std::max(trained, tape_bytes(context, config, evaluation)) +
         std::max(packed, packed_bytes(config, evaluation));
}

// Ids of an update's batches; the tags of the validation set, and their spans while it is measured.
double batch_bytes(const TaggerRun& run) {
  constexpr double kIds = 4 * sizeof(token), kOfWord = 64;
  const auto accumulate = static_cast<double>(run.settings.recipe.accumulate);
  const double ids =
      accumulate * (kIds * static_cast<double>(run.training->largest_batch()) +
                    sizeof(token) * static_cast<double>(run.training->most_characters()));
  if (!run.validation) return ids;
  const index trained = run.trained ? run.trained->words().word_count() : 0;
  return ids +
         kOfWord * static_cast<double>(std::max(run.validation->words().word_count(), trained));
}

// The gradient of a table of which an update uses some rows: their values, which grow by half, and
// the place of each row in them.
double table_gradient_bytes(index rows, index width, index used) {
  const auto V = static_cast<double>(rows), U = std::min(V, static_cast<double>(used));
  const double held = std::min(V, 1.5 * U) + U;
  return 4 * (held * static_cast<double>(width) + 2 * V);
}

// Of an update of so many words.
double gradient_bytes(const TaggerConfig& c, index words) {
  const double tables = static_cast<double>(c.vocabulary) * static_cast<double>(c.word_width) +
                        static_cast<double>(c.buckets) * static_cast<double>(c.ngram_width);
  const double of_words =
      c.freeze_embeddings ? 0 : table_gradient_bytes(c.vocabulary, c.word_width, words);
  return 4 * (static_cast<double>(parameter_count(c)) - tables) + of_words +
         table_gradient_bytes(c.buckets, c.ngram_width, kContextNgrams * words);
}

// Forward alone is a third of forward and backward.
double evaluation_updates(const TaggerRun& run, const RunCost& cost, index done) {
  if (!run.validation || done >= cost.updates) return 0;
  const index per_epoch = run.training->updates_per_epoch();
  const index evaluations = evaluations_to_come(run.settings.recipe, cost.updates, per_epoch, done);
  const double of_update =
      static_cast<double>(run.training->words().word_count()) / static_cast<double>(per_epoch);
  index words = run.validation->words().word_count();
  if (run.trained) words += run.trained->words().word_count();
  return static_cast<double>(evaluations) * static_cast<double>(words) / (3 * of_update);
}

}  // namespace

RunCost cost_of(const TaggerRun& run) {
  const index per_epoch = run.training->updates_per_epoch();
  const Horizon horizon(parse_length(run.settings.recipe.stop_after, "--stop-after"), per_epoch);
  RunCost cost;
  cost.parameters = parameter_count(run.settings.model);
  cost.updates = horizon.updates();
  cost.tokens_per_update = run.training->largest_batch() * run.settings.recipe.accumulate;
  cost.flops_per_update = flops_per_token(run.settings.model) *
                          static_cast<double>(run.training->words().word_count()) /
                          static_cast<double>(per_epoch);
  return cost;
}

double model_memory(const TaggerConfig& config) {
  const double table =
      config.position == PositionKind::kSinusoidal
          ? static_cast<double>(resolve(config).position_max) * static_cast<double>(config.width)
          : 0;
  return 4 * (static_cast<double>(parameter_count(config)) + table);
}

double training_memory(const Context& context, const TaggerRun& run, index checkpoint_bytes) {
  const TaggerConfig& config = run.settings.model;
  return peak_of_training({.model = model_memory(config),
                           .values = 4 * static_cast<double>(parameter_count(config)),
                           .frozen = 4 * static_cast<double>(frozen_count(config)),
                           .gradients = gradient_bytes(config, run.settings.recipe.accumulate *
                                                                   run.training->largest_batch()),
                           .passes = passes_bytes(context, run),
                           .batches = batch_bytes(run),
                           .records = record_bytes(run.settings.recipe, cost_of(run).updates,
                                                   observed_heads(sized_stages(config))) +
                                      vocabulary_bytes(run.vocabulary.words.get())},
                          checkpoint_bytes);
}

RunTime estimate_run_time(const Context& context, const TaggerRun& run, const RunState& done) {
  const TrainOptions& recipe = run.settings.recipe;
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const Tagger model(run.settings.model, run.tags.rules(), recipe.seed);
    TaggerObjective objective(context, model,
                              {.training = *run.training,
                               .validation = nullptr,
                               .tags = run.tags,
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
