// SPDX-License-Identifier: Apache-2.0
// The cost of a training of a translator: updates, FLOPs, memory and time.
#include <algorithm>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/run_cost.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/objective.h"
#include "fovea/task/translate/run.h"

namespace fovea {

namespace {

template <class Set>
TranslationLoad load_of(const Set& set, TapeMode mode, const TranslatorRun& run) {
  const bool observes = mode == TapeMode::kTrain && run.settings.recipe.observe_every > 0;
  const TapeLoad load{
      .mode = mode, .observes = observes, .precision = run.settings.recipe.precision};
  TranslationLoad both{load, load};
  both.source.tokens = set.largest_source();
  both.target.tokens = set.largest_target();
  return both;
}

bool translates(const TranslatorRun& run) {
  return run.validation && run.settings.text.metric != TranslatorMetric::kLoss;
}

// Validations that translate, beside the tape.
double translation_bytes(const Context& context, const TranslatorRun& run) {
  if (!translates(run)) return 0;
  const PairTokens& pairs = run.validation->pairs();
  index longest = 0;
  for (index i = 0; i < pairs.size(); ++i) longest = std::max(longest, pairs.source_length(i));
  return translating_bytes(context, run.settings.model, validation_search(), pairs.size(), longest);
}

// One tape serves updates and evaluations in turn. Packed forms that only evaluations need are kept
// for the next evaluation.
double passes_bytes(const Context& context, const TranslatorRun& run) {
  const TranslatorConfig& config = run.settings.model;
  PassCost cost = plan_pass(context, config, load_of(*run.training, TapeMode::kTrain, run));
  for (const auto* set : {&run.validation, &run.trained}) {
    if (!*set) continue;
    cost =
        larger_of_each(cost, plan_pass(context, config, load_of(**set, TapeMode::kInference, run)));
  }
  return cost.bytes() + translation_bytes(context, run);
}

// Ids of an update's batches, of both sides.
double batch_bytes(const TranslatorRun& run) {
  return static_cast<double>(run.settings.recipe.accumulate) * sizeof(token) *
         static_cast<double>(run.training->largest_source() + 2 * run.training->largest_target());
}

double update_gradients(const TranslatorRun& run) {
  const TranslatorConfig c = resolve(run.settings.model);
  const index accumulate = run.settings.recipe.accumulate;
  std::vector<UsedTable> tables;
  if (encoder_of(c).token_rows == RowUse::kSparse) {
    tables.push_back({c.vocabulary, c.width, accumulate * run.training->largest_source()});
  }
  if (!c.share_embeddings && decoder_of(c).token_rows == RowUse::kSparse) {
    tables.push_back({c.target_vocabulary, c.width, accumulate * run.training->largest_target()});
  }
  return gradient_bytes(parameter_count(c), tables);
}

// The heads of the decoder's layers count twice: they have two attentions.
ObservedHeads heads_of(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  ObservedHeads heads = observed_heads(encoder_stages(c));
  heads.layers += 2 * c.decoder_layers;
  heads.heads += 2 * c.decoder_layers * c.heads;
  return heads;
}

// Forward alone is a third of forward and backward. Greedy translations take about twice as long as
// the loss (an estimate).
double evaluation_updates(const TranslatorRun& run, const RunCost& cost, index done) {
  if (!run.validation || done >= cost.updates) return 0;
  const index per_epoch = run.training->updates_per_epoch();
  const index evaluations = evaluations_to_come(run.settings.recipe, cost.updates, per_epoch, done);
  const double of_update =
      static_cast<double>(run.training->pairs().target_count()) / static_cast<double>(per_epoch);
  index tokens = (translates(run) ? 3 : 1) * run.validation->pairs().target_count();
  if (run.trained) tokens += run.trained->pairs().target_count();
  return static_cast<double>(evaluations) * static_cast<double>(tokens) / (3 * of_update);
}

}  // namespace

RunCost cost_of(const TranslatorRun& run) {
  return cost_of_updates(run, run.training->largest_target());
}

double flops_of_update(const Context& context, const TranslatorRun& run) {
  const PairTokens& pairs = run.training->pairs();
  std::vector<index> sources, targets;
  for (index i = 0; i < pairs.size(); ++i) {
    sources.push_back(pairs.source_length(i));
    targets.push_back(pairs.target_length(i));
  }
  const LengthGroups groups(sources);
  TranslationLoad load = load_of(*run.training, TapeMode::kTrain, run);
  load = {groups.load_of(load.source, sources), groups.load_of(load.target, targets)};
  return plan_pass(context, run.settings.model, load).flops *
         static_cast<double>(pairs.target_count()) /
         (static_cast<double>(load.target.tokens) *
          static_cast<double>(run.training->updates_per_epoch()));
}

double training_memory(const Context& context, const TranslatorRun& run, index checkpoint_bytes) {
  const TranslatorConfig& config = run.settings.model;
  return peak_of_training(
      {.model = model_memory(config),
       .values = 4 * static_cast<double>(parameter_count(config)),
       .gradients = update_gradients(run),
       .passes = passes_bytes(context, run),
       .batches = batch_bytes(run),
       .records = record_bytes(run.settings.recipe, cost_of(run).updates, heads_of(config)) +
                  vocabulary_bytes(run.vocabulary.of_source.get()) +
                  vocabulary_bytes(run.vocabulary.of_target.get())},
      checkpoint_bytes);
}

RunTime estimate_run_time(const Context& given, const TranslatorRun& run, const RunState& done) {
  const TrainOptions& recipe = run.settings.recipe;
  const Context context = given.with(recipe.precision);
  const auto with_objective = [&](const std::function<void(Objective&)>& use) {
    const Translator model(run.settings.model, recipe.seed);
    TranslatorObjective objective(context, model,
                                  {.training = *run.training,
                                   .validation = nullptr,
                                   .smoothing = run.settings.text.label_smoothing,
                                   .accumulate = recipe.accumulate,
                                   .seed = recipe.seed});
    use(objective);
  };
  const RunCost cost = cost_of(run);
  return estimate_time(
      context,
      {.recipe = recipe,
       .parameters = cost.parameters,
       .flops_of_update = [&] { return flops_of_update(context, run); },
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
