// SPDX-License-Identifier: Apache-2.0
// What the training of a tagger has of its own.
#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/tag/objective.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/train_run.h"

namespace fovea {

std::vector<NamedFile> model_files(const TaggerRun& run) {
  std::vector<NamedFile> files =
      first_files(config_text(run.settings, run.outputs), run.vocabulary.words->data());
  const auto add = [&](std::string_view name, const std::unique_ptr<Tokenizer>& tokenizer) {
    if (tokenizer) files.push_back({std::string(name), to_text(tokenizer->data())});
  };
  add(kCharactersName, run.vocabulary.characters);
  add(kKnownWordsName, run.vocabulary.known);
  return files;
}

void start_with_vectors(const Tagger& model, const WordVectors& vectors) {
  constexpr std::string_view kTable = "words.tokens";
  for (Parameter* p : model.parameters()) {
    if (p->name == kTable) return start_with_vectors(*p, vectors);
  }
  fail(ErrorCode::kInternal, "tagger: it has no parameter '{}'", kTable);
}

void keep_found(TaggerTextOptions& given, const TaggerTextOptions& began) {
  std::vector<SchemeChoice>& is = given.scheme;
  const std::vector<SchemeChoice>& was = began.scheme;
  if (is.size() == 1) is.resize(was.size(), is[0]);
  for (std::size_t c = 0; c < std::min(is.size(), was.size()); ++c) {
    if (is[c] == SchemeChoice::kAuto) is[c] = was[c];
  }
}

void keep_found(TaggerSettings& given, const TaggerSettings& began) {
  keep_found(given.text, began.text);
  given.model.vocabulary = began.model.vocabulary;
  given.model.characters = began.model.characters;
  given.model.tags = began.model.tags;
  given.model.block = began.model.block;
}

Tagger make_model(const TaggerRun& run) {
  return Tagger(run.settings.model, crf_rules(run.settings.model, run.tags),
                run.settings.recipe.seed);
}

TaggerObjective make_objective(const Context& context, const Tagger& model, const TaggerRun& run) {
  const TaggerTextOptions& text = run.settings.text;
  return {context,
          model,
          {.training = *run.training,
           .validation = run.validation ? &*run.validation : nullptr,
           .trained = run.trained ? &*run.trained : nullptr,
           .tags = run.tags,
           .columns = column_names(text),
           .metric = text.metric,
           .segments = text.task == TagTask::kSegment,
           .joint = text.joint,
           .accumulate = run.settings.recipe.accumulate,
           .seed = run.settings.recipe.seed}};
}

TrainResult train_tagger(const Context& context, const TaggerRun& run,
                         const std::filesystem::path& folder, StartAt start,
                         TrainingObserver& observer) {
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

}  // namespace fovea
