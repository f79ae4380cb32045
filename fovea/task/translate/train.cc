// SPDX-License-Identifier: Apache-2.0
// What the training of a translator has of its own.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "fovea/task/train_run.h"
#include "fovea/task/translate/objective.h"
#include "fovea/task/translate/run.h"
#include "fovea/train/average.h"

namespace fovea {

namespace {

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

std::vector<NamedFile> model_files(const TranslatorRun& run) {
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

Translator make_model(const TranslatorRun& run) {
  return Translator(run.settings.model, run.settings.recipe.seed);
}

TranslatorObjective make_objective(const Context& context, const Translator& model,
                                   const TranslatorRun& run) {
  const TranslatorTextOptions& text = run.settings.text;
  std::optional<TranslationCheck> check;
  if (text.metric != TranslatorMetric::kLoss && run.validation) {
    check.emplace(TranslationCheck{run.vocabulary, run.validation_texts, text.metric});
  }
  return {context,
          model,
          {.training = *run.training,
           .validation = run.validation ? &*run.validation : nullptr,
           .trained = run.trained ? &*run.trained : nullptr,
           .smoothing = text.label_smoothing,
           .accumulate = run.settings.recipe.accumulate,
           .seed = run.settings.recipe.seed,
           .check = check}};
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

}  // namespace fovea
