// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/objective.h"

#include "fovea/base/option.h"
#include "fovea/metrics/translation.h"
#include "fovea/task/translate/line_translator.h"

namespace fovea {

TranslationBatch view_of(const PairBatch& batch) {
  return {
      .source = {.ids = batch.source, .offsets = batch.source_offsets, .samples = batch.samples},
      .target = {.ids = batch.target, .offsets = batch.target_offsets, .samples = batch.samples},
      .targets = batch.targets};
}

std::optional<SetLoss> loss_of(Tape& tape, const Translator& model, const PairEvaluation& set,
                               const std::function<bool()>& interrupted) {
  return loss_of_batches(
      tape, set.size(), [&](index i) { return set[i]; },
      [&](const PairBatch& batch) { return model.loss(tape, view_of(batch)); }, interrupted);
}

TranslationOptions validation_search() {
  TranslationOptions options;
  options.search.beam = 1;
  options.raw = true;  // as runs of earlier versions measured
  return options;
}

bool measure_translations(const Context& context, const Translator& model,
                          const TranslationCheck& check, const std::function<bool()>& interrupted,
                          Validation& validation) {
  LineTranslator translator(context, model, check.vocabulary, validation_search(), "validation");
  const auto made = translate_all(translator, check.texts.source, interrupted);
  if (!made) return false;
  const Translations translations{.hypotheses = *made, .references = {check.texts.target}};
  const auto score_of = [&](std::string_view name) {
    const auto metric = choose(translation_metrics(), name, "metric").make({});
    return corpus_score(*metric, TranslationCounts(context, *metric, translations));
  };
  const double bleu = score_of("bleu"), chrf = score_of("chrf");
  validation.metrics = {{"bleu", bleu}, {"chrf", chrf}};
  validation.score =
      score_with_tie(check.metric == TranslatorMetric::kChrf ? chrf : bleu, validation.loss);
  return true;
}

TranslatorObjective::TranslatorObjective(const Context& context, const Translator& model,
                                         TranslatorText text)
    : ObjectiveOf(context, model, text.training, {text.accumulate, text.seed},
                  {.smoothing = text.smoothing}),
      text_(text) {}

index TranslatorObjective::begin_update(index update) {
  if (best_ != nullptr) best_->go_on_from(update);
  return ObjectiveOf::begin_update(update);
}

std::optional<Validation> TranslatorObjective::validate(const std::function<bool()>& interrupted) {
  std::optional<Validation> found = measure(*text_.validation, interrupted);
  if (!found || !text_.check) return found;
  const bool whole =
      measure_translations(tape_.context(), model_, *text_.check, interrupted, *found);
  return whole ? found : std::nullopt;
}

std::optional<Validation> TranslatorObjective::measure(const PairEvaluation& set,
                                                       const std::function<bool()>& interrupted) {
  return validation_of(loss_of(free_tape(), model_, set, interrupted));
}

}  // namespace fovea
