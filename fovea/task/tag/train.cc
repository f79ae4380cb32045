// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/check.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/first_files.h"
#include "fovea/task/tag/objective.h"
#include "fovea/task/tag/run.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

Parameter& word_table(const Tagger& model) {
  constexpr std::string_view kTable = "words.tokens";
  for (Parameter* p : model.parameters()) {
    if (p->name == kTable) return *p;
  }
  fail(ErrorCode::kInternal, "tagger: it has no parameter '{}'", kTable);
}

}  // namespace

TrainResult train_tagger(const Context& given, const TaggerRun& run,
                         const std::filesystem::path& folder, StartAt start,
                         TrainingObserver& observer) {
  std::vector<NamedFile> files =
      first_files(config_text(run.settings, run.outputs), run.vocabulary.words->data());
  const auto add = [&](std::string_view name, const std::unique_ptr<Tokenizer>& tokenizer) {
    if (tokenizer) files.push_back({std::string(name), to_text(tokenizer->data())});
  };
  add(kCharactersName, run.vocabulary.characters);
  add(kKnownWordsName, run.vocabulary.known);
  if (!start.resume) write_model_files(folder, files);
  const TrainOptions& recipe = run.settings.recipe;
  const Context context = given.with(recipe.precision);
  const Tagger model(run.settings.model, crf_rules(run.settings.model, run.tags), recipe.seed);
  if (run.vectors) start_with_vectors(word_table(model), *run.vectors);
  TaggerObjective objective(context, model,
                            {.training = *run.training,
                             .validation = run.validation ? &*run.validation : nullptr,
                             .trained = run.trained ? &*run.trained : nullptr,
                             .tags = run.tags,
                             .columns = column_names(run.settings.text),
                             .metric = run.settings.text.metric,
                             .segments = run.settings.text.task == TagTask::kSegment,
                             .joint = run.settings.text.joint,
                             .accumulate = recipe.accumulate,
                             .seed = recipe.seed});
  Trainer trainer(
      context, objective, observer,
      {.options = recipe, .folder = folder, .identity = run.identity, .attachments = files});
  return run_from(trainer, std::move(start));
}

}  // namespace fovea
