// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model.h"
#include "fovea/task/objective.h"
#include "fovea/text/word_list.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

// What a model folder and each checkpoint hold besides numbers.
std::vector<NamedFile> first_files(const LanguageModelRun& run) {
  const TokenizerData tokenizer = run.tokenizer->data();
  std::vector<NamedFile> files = {{"config.json", config_text(run.settings)},
                                  {"tokenizer.txt", to_text(tokenizer)}};
  if (tokenizer.kind == kWordKind) {
    files.push_back({std::string(kWordListName), word_list_text(tokenizer)});
  }
  return files;
}

}  // namespace

TrainResult train_language_model(const Context& context, const LanguageModelRun& run,
                                 const std::filesystem::path& folder, StartAt start,
                                 TrainingObserver& observer) {
  const std::vector<NamedFile> files = first_files(run);
  if (!start.resume) write_model_files(folder, files);
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
