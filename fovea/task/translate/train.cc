// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "fovea/base/option.h"
#include "fovea/metrics/translation.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/run_flow.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/run.h"
#include "fovea/train/average.h"

namespace fovea {

namespace {

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
  return gradient_bytes(run.settings.recipe.optimizer, parameter_count(c), tables);
}

// All files of a half, one after another.
std::vector<std::string> joined(const std::vector<std::string>& source,
                                const std::vector<std::string>& target,
                                const std::vector<std::string>& tables) {
  std::vector<std::string> all = source;
  all.insert(all.end(), target.begin(), target.end());
  all.insert(all.end(), tables.begin(), tables.end());
  return all;
}

// The parameters, put back at the end.
class HeldParameters {
 public:
  explicit HeldParameters(std::span<Parameter* const> parameters) : parameters_(parameters) {
    for (Parameter* p : parameters) {
      p->catch_up();
      values_.push_back(p->value.to(DType::kFloat64));
    }
  }
  ~HeldParameters() {
    for (std::size_t n = 0; n < values_.size(); ++n) set(n, values_[n]);
  }
  HeldParameters(const HeldParameters&) = delete;
  HeldParameters& operator=(const HeldParameters&) = delete;

  void set(std::size_t n, const Tensor& value) {
    parameters_[n]->value.copy_from(value.to(DType::kFloat32));
    ++parameters_[n]->version;
  }

 private:
  std::span<Parameter* const> parameters_;
  std::vector<Tensor> values_;
};

// Weights, and the updates of which they are the mean.
struct MeanWeights {
  std::vector<index> steps;
  std::vector<NamedTensor> tensors;
};

// Nothing of fewer than two.
std::optional<MeanWeights> mean_of_last(const std::filesystem::path& folder, index step,
                                        index count, std::span<Parameter* const> parameters) {
  const std::vector<index> steps = checkpoints_to_average(folder, step, count);
  if (steps.size() < 2) return std::nullopt;
  return MeanWeights{steps, mean_of_checkpoints(folder, steps, parameters)};
}
std::optional<MeanWeights> mean_of_best(BestWeights& best, index step,
                                        std::span<Parameter* const> parameters) {
  best.go_on_from(step);
  const std::vector<index> steps = best.steps();
  if (steps.size() < 2) return std::nullopt;
  return MeanWeights{steps, best.mean(parameters)};
}

// The mean replaces the best weights only if it validates better; without validation always.
void take_mean(TranslatorObjective& objective, const std::filesystem::path& folder, DType dtype,
               const RunState& state, const MeanWeights& weights, TrainingObserver& observer) {
  const auto& [steps, mean] = weights;
  const auto parameters = objective.parameters();
  HeldParameters held(parameters);
  std::string found;
  if (objective.has_validation()) {
    for (std::size_t n = 0; n < mean.size(); ++n) held.set(n, mean[n].tensor);
    const Validation mean_found = *objective.validate([] { return false; });
    const bool better = mean_found.goodness() > state.best_score;
    found = fmt::format(": validation loss {:.4f}, {:.4f} before", mean_found.loss,
                        state.best_valid_loss);
    for (const auto& [name, value] : mean_found.metrics)
      found += fmt::format(", {} {:.2f}", name, value);
    if (!better) {
      observer.noticed(fmt::format("the mean of the weights of updates {} is no better{}",
                                   fmt::join(steps, ", "), found));
      return;
    }
  }
  write_model_weights(folder, mean, {{"step", std::to_string(state.step)}}, dtype);
  observer.noticed(fmt::format("the model is the mean of the weights of updates {}{}",
                               fmt::join(steps, ", "), found));
}

}  // namespace

// The heads of the decoder's layers count twice: they have two attentions.
ObservedHeads observed_heads(const TranslatorConfig& config) {
  const TranslatorConfig c = resolve(config);
  ObservedHeads heads = observed_heads(encoder_stages(c));
  heads.layers += 2 * c.decoder_layers;
  heads.heads += 2 * c.decoder_layers * c.heads;
  return heads;
}

template <>
struct TaskOf<TranslatorRun> {
  using Objective = TranslatorObjective;

  static std::vector<NamedFile> files(const TranslatorRun& run) {
    std::vector<NamedFile> files =
        first_files(config_text(run.settings), run.vocabulary.source().data());
    if (!run.vocabulary.of_target) return files;
    const TokenizerData target = run.vocabulary.target().data();
    files.push_back({std::string(kTargetTokenizerName), to_text(target)});
    if (target.kind == kWordKind) {
      files.push_back({std::string(kTargetWordListName), word_list_text(target)});
    }
    return files;
  }

  static Translator make(const TranslatorRun& run) {
    if (run.from_base) {
      return load_weights_of(run.settings.from.base, run.settings.model, run.settings.recipe.seed);
    }
    return Translator(run.settings.model, run.settings.recipe.seed);
  }

  static index tokens(const TranslatorRun& run) { return run.training->largest_target(); }

  static TranslationLoad load(const auto& set, TapeMode mode, const TranslatorRun& run) {
    const TapeLoad load = batch_load(run, mode);
    TranslationLoad both{load, load};
    both.source.tokens = set.largest_source();
    both.target.tokens = set.largest_target();
    return both;
  }

  static OwnBytes bytes(const Context& context, const TranslatorRun& run) {
    return {.gradients = update_gradients(run),
            .batches = batch_bytes(run),
            .vocabulary = vocabulary_bytes(run.vocabulary.of_source.get()) +
                          vocabulary_bytes(run.vocabulary.of_target.get()),
            .more = translation_bytes(context, run)};
  }

  // Greedy translations take about twice as long as the loss (an estimate).
  static RowCounts rows(const TranslatorRun& run) {
    index tokens = 0;
    if (run.validation) {
      tokens += (translates(run) ? 3 : 1) * run.validation->pairs().target_count();
    }
    if (run.trained) tokens += run.trained->pairs().target_count();
    return {.of_update = static_cast<double>(run.training->pairs().target_count()) /
                         static_cast<double>(run.training->updates_per_epoch()),
            .evaluated = static_cast<double>(tokens)};
  }

  static double flops(const Context& context, const TranslatorRun& run) {
    const PairTokens& pairs = run.training->pairs();
    std::vector<index> sources, targets;
    for (index i = 0; i < pairs.size(); ++i) {
      sources.push_back(pairs.source_length(i));
      targets.push_back(pairs.target_length(i));
    }
    const LengthGroups groups(sources);
    TranslationLoad load = TaskOf::load(*run.training, TapeMode::kTrain, run);
    load = {groups.load_of(load.source, sources), groups.load_of(load.target, targets)};
    return plan_pass(context, run.settings.model, load).flops *
           static_cast<double>(pairs.target_count()) /
           (static_cast<double>(load.target.tokens) *
            static_cast<double>(run.training->updates_per_epoch()));
  }
};

RunFiles files_of(const TranslatorTextOptions& text) {
  return {.train = joined(text.source, text.target, text.train),
          .valid = joined(text.valid_source, text.valid_target, text.valid),
          .train_option = text.train.empty() ? "source, --target" : "train",
          .valid_option = text.valid.empty() ? "valid-source, --valid-target" : "valid"};
}

void keep_found(TranslatorSettings& given, const TranslatorSettings& began) {
  given.model.vocabulary = began.model.vocabulary;
  given.model.target_vocabulary = began.model.target_vocabulary;
  TranslatorTextOptions& text = given.text;
  if (text.target_tokenizer.empty()) text.target_tokenizer = text.tokenizer;
}

TrainResult train_translator(const Context& context, const TranslatorRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer) {
  TranslatorRecipe recipe = run.settings.recipe;
  recipe.keep = std::max(recipe.keep, recipe.average);
  RunTraining training(context, run, folder, std::move(start));
  TranslatorObjective& objective = training.objective();
  BestWeights best(folder, recipe.average_best);
  if (recipe.average_best > 1) objective.keep_best(best);
  const TrainResult result = training.train(recipe, observer);
  if (result.stopped || std::max(recipe.average, recipe.average_best) < 2) return result;
  const std::optional<MeanWeights> mean =
      recipe.average_best > 1
          ? mean_of_best(best, result.state.step, objective.parameters())
          : mean_of_last(folder, result.state.step, recipe.average, objective.parameters());
  if (mean) {
    take_mean(objective, folder, dtype_of(recipe.save_dtype), result.state, *mean, observer);
  }
  return result;
}

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

bool measure_translations(const Context& context, const Translator& model, const TranslatorRun& run,
                          const std::function<bool()>& interrupted, Validation& validation) {
  const SentencePairs& texts = run.validation_texts;
  LineTranslator translator(context, model, run.vocabulary, validation_search(), "validation");
  const auto made = translate_all(translator, texts.source, interrupted);
  if (!made) return false;
  const Translations translations{.hypotheses = *made, .references = {texts.target}};
  const auto score_of = [&](std::string_view name) {
    const auto metric = choose(translation_metrics(), name, "metric").make({});
    return corpus_score(*metric, TranslationCounts(context, *metric, translations));
  };
  const double bleu = score_of("bleu"), chrf = score_of("chrf");
  validation.metrics = {{"bleu", bleu}, {"chrf", chrf}};
  const bool by_chrf = run.settings.text.metric == TranslatorMetric::kChrf;
  validation.score = score_with_tie(by_chrf ? chrf : bleu, validation.loss);
  return true;
}

index TranslatorObjective::begin_update(index update) {
  if (best_ != nullptr) best_->go_on_from(update);
  return ObjectiveOf::begin_update(update);
}

std::optional<Validation> TranslatorObjective::validate(const Interrupted& interrupted) {
  std::optional<Validation> found = ObjectiveOf::validate(interrupted);
  if (!found || !translates(run_)) return found;
  const bool whole = measure_translations(tape_.context(), model_, run_, interrupted, *found);
  return whole ? found : std::nullopt;
}

template RunCost cost_of(const TranslatorRun&);
template double flops_of_update(const Context&, const TranslatorRun&);
template double training_memory(const Context&, const TranslatorRun&, index);
template double updates_to_come(const TranslatorRun&, const RunState&);
template RunTime estimate_run_time(const Context&, const TranslatorRun&, const RunState&);

}  // namespace fovea
