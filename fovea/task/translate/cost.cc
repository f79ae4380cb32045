// SPDX-License-Identifier: Apache-2.0
// The cost of a training of a translator: updates, FLOPs, memory and time.
#include <algorithm>
#include <vector>

#include "fovea/model/pass_plan.h"
#include "fovea/task/run_cost.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/objective.h"
#include "fovea/task/translate/run.h"

namespace fovea {

namespace {

template <class Set>
TranslationLoad load_of(const Set& set, TapeMode mode, const TranslatorRun& run) {
  const TapeLoad load = batch_load(run, mode);
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

// Greedy translations take about twice as long as the loss (an estimate).
RowCounts row_counts(const TranslatorRun& run) {
  index tokens = 0;
  if (run.validation) tokens += (translates(run) ? 3 : 1) * run.validation->pairs().target_count();
  if (run.trained) tokens += run.trained->pairs().target_count();
  return {.of_update = static_cast<double>(run.training->pairs().target_count()) /
                       static_cast<double>(run.training->updates_per_epoch()),
          .evaluated = static_cast<double>(tokens)};
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

// The heads of the decoder's layers count twice: they have two attentions.
ObservedHeads observed_heads(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  ObservedHeads heads = observed_heads(encoder_stages(c));
  heads.layers += 2 * c.decoder_layers;
  heads.heads += 2 * c.decoder_layers * c.heads;
  return heads;
}

double training_memory(const Context& context, const TranslatorRun& run, index checkpoint_bytes) {
  const double passes = pass_bytes(
      context, run, [&](const auto& set, TapeMode mode) { return load_of(set, mode, run); });
  return peak_of_run(run,
                     {.gradients = update_gradients(run),
                      .passes = passes + translation_bytes(context, run),
                      .batches = batch_bytes(run),
                      .vocabulary = vocabulary_bytes(run.vocabulary.of_source.get()) +
                                    vocabulary_bytes(run.vocabulary.of_target.get())},
                     checkpoint_bytes);
}

RunTime estimate_run_time(const Context& context, const TranslatorRun& run, const RunState& done) {
  return time_of_run(context, run, row_counts(run), done);
}

}  // namespace fovea
