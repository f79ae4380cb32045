// SPDX-License-Identifier: Apache-2.0
// What the training of a language model has of its own.
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/language_model/objective.h"
#include "fovea/task/train_run.h"

namespace fovea {

std::vector<NamedFile> model_files(const LanguageModelRun& run) {
  return first_files(config_text(run.settings), run.tokenizer->data());
}

void keep_found(LanguageModelSettings& given, const LanguageModelSettings& began) {
  given.model.vocabulary = began.model.vocabulary;
}

LanguageModel make_model(const LanguageModelRun& run) {
  return LanguageModel(run.settings.model, run.settings.recipe.seed);
}

LanguageModelObjective make_objective(const Context& context, const LanguageModel& model,
                                      const LanguageModelRun& run) {
  return {context,
          model,
          {.training = *run.training,
           .validation = run.validation ? &*run.validation : nullptr,
           .accumulate = run.settings.recipe.accumulate,
           .seed = run.settings.recipe.seed}};
}

TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer) {
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

}  // namespace fovea
