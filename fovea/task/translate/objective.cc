// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/translate/objective.h"

#include <algorithm>

#include "fovea/base/option.h"
#include "fovea/metrics/translation.h"
#include "fovea/task/attention_record.h"
#include "fovea/task/translate/line_translator.h"

namespace fovea {

TranslationBatch view_of(const PairBatch& batch) {
  return {
      .source = {.ids = batch.source, .offsets = batch.source_offsets, .samples = batch.samples},
      .target = {.ids = batch.target, .offsets = batch.target_offsets, .samples = batch.samples},
      .targets = batch.targets};
}

std::optional<PairLoss> loss_of(Tape& tape, const Translator& model, const PairEvaluation& set,
                                const std::function<bool()>& interrupted) {
  PairLoss loss;
  for (index i = 0; i < set.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const PairBatch batch = set[i];
    tape.reset(TapeMode::kInference);
    loss.sum += double{model.loss(tape, view_of(batch)).value<float>()[0][0]};
    loss.targets += batch.target_count();
  }
  return loss;
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
  constexpr double kTie = 1e-9, kMostLoss = 1e3;
  validation.score = (check.metric == TranslatorMetric::kChrf ? chrf : bleu) -
                     kTie * std::min(validation.loss, kMostLoss);
  return true;
}

TranslatorObjective::TranslatorObjective(const Context& context, const Translator& model,
                                         TranslatorText text)
    : model_(model), text_(text), tape_(context) {}

index TranslatorObjective::begin_update(index update) {
  if (text_.best != nullptr) text_.best->go_on_from(update);
  batches_.clear();
  index targets = 0;
  for (index number = 0; number < text_.accumulate; ++number) {
    batches_.push_back(text_.training.batch(update, number));
    targets += batches_.back().target_count();
  }
  options_.scale = 1 / static_cast<double>(targets);
  options_.smoothing = text_.smoothing;
  options_.dropout.seed = text_.seed;
  options_.dropout.step = static_cast<std::uint64_t>(update);
  seen_.assign(observes_ ? static_cast<std::size_t>(model_.attentions()) : 0, {});
  options_.attention = seen_;
  return targets;
}

AttentionRecord TranslatorObjective::observed_attention() { return record_of(seen_); }

double TranslatorObjective::forward(index batch) {
  const PairBatch& chosen = batches_[static_cast<std::size_t>(batch)];
  tape_.reset(TapeMode::kTrain);
  loss_ = {};
  if (chosen.size() == 0) return 0;
  loss_ = model_.loss(tape_, view_of(chosen), options_);
  return double{loss_.value<float>()[0][0]};
}

void TranslatorObjective::backward() {
  if (loss_.defined()) tape_.backward(loss_);
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
  loss_ = {};
  const std::optional<PairLoss> loss = loss_of(tape_, model_, set, interrupted);
  if (!loss) return std::nullopt;
  return Validation{.loss = loss->mean()};
}

}  // namespace fovea
