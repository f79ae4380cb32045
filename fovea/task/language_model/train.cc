// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/first_files.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/task/language_model/objective.h"
#include "fovea/train/model_folder.h"

namespace fovea {

TrainResult train_language_model(const Context& given, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer) {
  const std::vector<NamedFile> files =
      first_files(config_text(run.settings), run.tokenizer->data());
  if (!start.resume) write_model_files(folder, files);
  const Context context = given.with(run.settings.recipe.precision);
  const LanguageModel model(run.settings.model, run.settings.recipe.seed);
  LanguageModelObjective objective(context, model,
                                   {.training = *run.training,
                                    .validation = run.validation ? &*run.validation : nullptr,
                                    .accumulate = run.settings.recipe.accumulate,
                                    .seed = run.settings.recipe.seed});
  Trainer trainer(context, objective, observer,
                  {.options = run.settings.recipe,
                   .folder = folder,
                   .identity = run.identity,
                   .attachments = files});
  return run_from(trainer, std::move(start));
}

}  // namespace fovea
