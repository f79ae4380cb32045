// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/tag/run.h"

#include <algorithm>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/tagger.h"
#include "fovea/task/classify/vectors.h"
#include "fovea/task/run_cost.h"
#include "fovea/task/tag/objective.h"
#include "fovea/task/training_task.h"

namespace fovea {

namespace {

template <class Set>
WordLoad load_of(const Set& set, TapeMode mode, const TaggerRun& run) {
  WordLoad load{.tape = batch_load(run, mode), .characters = set.most_characters()};
  load.tape.tokens = set.largest_batch();
  load.tape.sequences = run.settings.text.batch_size;
  return load;
}

// Ids of an update's batches; the tags of the validation set, and their spans while it is measured.
double batch_bytes(const TaggerRun& run) {
  const auto columns = static_cast<double>(run.tags.size());
  const double of_ids = (3 + columns) * sizeof(token), of_word = 32 + 32 * columns;
  const auto accumulate = static_cast<double>(run.settings.recipe.accumulate);
  const double ids =
      accumulate * (of_ids * static_cast<double>(run.training->largest_batch()) +
                    sizeof(token) * static_cast<double>(run.training->most_characters()));
  if (!run.validation) return ids;
  const index trained = run.trained ? run.trained->words().word_count() : 0;
  return ids +
         of_word * static_cast<double>(std::max(run.validation->words().word_count(), trained));
}

double update_gradients(const TaggerRun& run) {
  const TaggerConfig& c = run.settings.model;
  const index batches = run.settings.recipe.accumulate;
  const index words = batches * run.training->largest_batch();
  const index features = most_features(words, batches * run.training->most_characters());
  const UsedTable tables[] = {{c.vocabulary, c.word_width, words, c.freeze_embeddings},
                              {c.buckets, c.ngram_width, kContextNgrams * words},
                              {c.linear_buckets, tag_count(c), features}};
  return gradient_bytes(parameter_count(c), tables);
}

double words_of_update(const TaggerRun& run) {
  return static_cast<double>(run.training->words().word_count()) /
         static_cast<double>(run.training->updates_per_epoch());
}

RowCounts row_counts(const TaggerRun& run) {
  index words = run.validation ? run.validation->words().word_count() : 0;
  if (run.trained) words += run.trained->words().word_count();
  return {.of_update = words_of_update(run), .evaluated = static_cast<double>(words)};
}

}  // namespace

RunCost cost_of(const TaggerRun& run) {
  return cost_of_updates(run, run.training->largest_batch());
}

double flops_of_update(const Context& context, const TaggerRun& run) {
  const TaggedWords& all = run.training->words();
  std::vector<index> lengths;
  for (index i = 0; i < all.size(); ++i) lengths.push_back(all.length(i));
  WordLoad load = load_of(*run.training, TapeMode::kTrain, run);
  load.tape = LengthGroups(lengths).load_of(load.tape, lengths);
  const auto words = static_cast<double>(load.tape.tokens);
  load.characters = static_cast<index>(words * static_cast<double>(all.characters.size()) /
                                       static_cast<double>(std::max<index>(all.word_count(), 1)));
  return plan_pass(context, run.settings.model, load).flops * words_of_update(run) / words;
}

double training_memory(const Context& context, const TaggerRun& run, index checkpoint_bytes) {
  return peak_of_run(
      run,
      {.gradients = update_gradients(run),
       .passes = pass_bytes(
           context, run, [&](const auto& set, TapeMode mode) { return load_of(set, mode, run); }),
       .batches = batch_bytes(run),
       .vocabulary = vocabulary_bytes(run.vocabulary.words.get()) +
                     vocabulary_bytes(run.vocabulary.characters.get()),
       .frozen = frozen_count(run.settings.model)},
      checkpoint_bytes);
}

RunTime estimate_run_time(const Context& context, const TaggerRun& run, const RunState& done) {
  return time_of_run(context, run, row_counts(run), done);
}

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
