// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/language_model.h"

#include <algorithm>
#include <string>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/model/language_model_config.h"
#include "fovea/task/language_model/cost.h"
#include "fovea/task/language_model/objective.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_cost.h"
#include "fovea/task/training_task.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// config.json: the kind of the model, then all its settings.
struct LanguageModelFile {
  std::string kind{kLanguageModelKind};
  LanguageModelSettings settings;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    settings.visit_fields(visit);
  }
};

// At least as many values as any table or matrix whose size the settings name.
double largest_matrix(const LanguageModelConfig& c) {
  const index block = c.position == PositionKind::kLearned ? c.block : 0;
  double columns = static_cast<double>(std::max(c.vocabulary, block));
  if (c.kind == LanguageModelKind::kTransformer) {
    const double heads = static_cast<double>(c.heads) * static_cast<double>(c.head_dim);
    columns = std::max({columns, static_cast<double>(c.ff), heads});
  }
  return static_cast<double>(c.width) * columns;
}

ModelSizes sizes_of(const LanguageModelConfig& c) {
  return {.layers = layer_count(sized_stages(resolve(c))),
          .largest_matrix = largest_matrix(c),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

}  // namespace

std::string config_text(const LanguageModelSettings& settings) {
  LanguageModelFile config;
  config.settings = settings;
  return to_json(config);
}

LanguageModelSettings settings_from_text(std::string_view text, const std::string& name) {
  require_model_kind(text, name, kLanguageModelKind, "a language model");
  LanguageModelFile config;
  config.settings.model.set_first_revision();
  config.settings.model.embedding_scale = 1;  // of models that were made before it was a setting
  from_json(text, {name, ErrorCode::kModelDamaged}, config, MissingKeys::kKeepTheirValue);
  return config.settings;
}

LanguageModelSettings load_settings(const fs::path& folder) {
  return settings_from_text(read_model_file(folder, "config.json"),
                            (folder / "config.json").string());
}

LoadedLanguageModel load_language_model(const fs::path& folder) {
  LoadedLanguageModel loaded;
  loaded.settings = load_settings(folder);
  loaded.tokenizer = load_tokenizer(folder, loaded.settings.model.vocabulary);
  loaded.model = load_model<LanguageModel>(folder, sizes_of, loaded.settings.model,
                                           loaded.settings.recipe.seed);
  return loaded;
}

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
