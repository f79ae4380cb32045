// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/objective.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/first_files.h"
#include "fovea/train/model_folder.h"

namespace fovea {

TrainResult train_classifier(const Context& given, const ClassifierRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer) {
  const std::string config = config_text(run.settings, run.outputs);
  const std::vector<NamedFile> files = run.tokenizer
                                           ? first_files(config, run.tokenizer->data())
                                           : std::vector<NamedFile>{{"config.json", config}};
  if (!start.resume) write_model_files(folder, files);
  const TrainOptions& recipe = run.settings.recipe;
  const Context context = given.with(recipe.precision);
  const Classifier model(run.settings.model, recipe.seed);
  if (run.vectors) start_with_vectors(model, *run.vectors);
  ClassifierObjective objective(context, model,
                                {.training = *run.training,
                                 .validation = run.validation ? &*run.validation : nullptr,
                                 .class_weights = run.class_weights,
                                 .numbers = run.outputs.numbers,
                                 .frames = run.frames.rows(),
                                 .metric = run.settings.text.metric,
                                 .accumulate = recipe.accumulate,
                                 .seed = recipe.seed});
  Trainer trainer(
      context, objective, observer,
      {.options = recipe, .folder = folder, .identity = run.identity, .attachments = files});
  return run_from(trainer, std::move(start));
}

}  // namespace fovea
