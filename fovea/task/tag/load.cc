// SPDX-License-Identifier: Apache-2.0
// The files of a tagger, and what loading one takes.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/model/text_batch.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/run_cost.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/tag/tagger.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// config.json: the kind of the model, what it says, then all its settings.
struct TaggerFile {
  std::string kind{kTaggerKind};
  TaggerOutputs outputs = {};
  TaggerSettings settings = {};

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("kind", kind, "what the model does");
    visit("tags", outputs.tags, "the tags, in the order of the scores");
    visit("embeddings", outputs.vectors, "words that began with a vector of --embeddings");
    settings.visit_fields(visit);
  }
};

ModelSizes sizes_of(const TaggerConfig& config) {
  const TaggerConfig c = resolve(config);
  const auto matrix = [](index rows, index columns) {
    return static_cast<double>(rows) * static_cast<double>(columns);
  };
  return {.layers = layer_count(sized_stages(c)),
          .largest_matrix =
              std::max({matrix(c.vocabulary, c.word_width), matrix(c.features, c.width),
                        matrix(c.characters, c.character_width), matrix(c.buckets, c.ngram_width),
                        matrix(c.linear_buckets, tag_count(c))}),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

void check_config(const TaggerConfigFile& file, const std::string& name) {
  const index most = file.settings.text.max_length;
  if (most < 1 || most > file.settings.model.block) {
    fail(ErrorCode::kModelDamaged, "{}: expected a max_length in 1 to {}, got {}", name,
         file.settings.model.block, most);
  }
  check_stored(name, [&] { check_options(file.settings.text.table); });
}

// As many of everything as there are tag columns.
void check_columns(const TaggerConfigFile& file, const std::string& name) {
  const TaggerSettings& settings = file.settings;
  const std::size_t columns = column_names(settings.text).size();
  const auto require = [&](std::string_view what, std::size_t count) {
    if (count == columns) return;
    fail(ErrorCode::kModelDamaged, "{}: expected {} for {} tag columns, got {}", name, what,
         columns, count);
  };
  require("numbers of tags", settings.model.tags.size());
  require("schemes", settings.text.scheme.size());
  const std::vector<SchemeChoice>& schemes = settings.text.scheme;
  if (std::find(schemes.begin(), schemes.end(), SchemeChoice::kAuto) != schemes.end()) {
    fail(ErrorCode::kModelDamaged, "{}: expected a scheme, got auto", name);
  }
  const std::vector<index>& tags = settings.model.tags;
  const auto held = static_cast<index>(file.outputs.tags.size());
  const bool fits = std::all_of(tags.begin(), tags.end(),
                                [&](index count) { return count >= 1 && count <= held; });
  if (!fits || tag_count(settings.model) != held) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} tags, got {}", name, fmt::join(tags, " + "),
         held);
  }
}

std::unique_ptr<Tokenizer> load_named(const fs::path& folder, std::string_view file) {
  const std::string name(file);
  return make_tokenizer(
      tokenizer_data_from_text(read_model_file(folder, name), (folder / name).string()));
}

TaggerVocabulary load_vocabulary(const fs::path& folder, const TaggerSettings& settings) {
  const TaggerConfig& config = settings.model;
  TaggerVocabulary vocabulary;
  vocabulary.words = load_tokenizer(folder, config.vocabulary);
  if (reads_characters(settings)) {
    vocabulary.characters = load_named(folder, kCharactersName);
    if (vocabulary.characters->vocabulary_size() != config.characters) {
      fail(ErrorCode::kModelDamaged, "{}: {} has {} characters, the model {}", folder.string(),
           kCharactersName, vocabulary.characters->vocabulary_size(), config.characters);
    }
  }
  if (settings.text.task == TagTask::kSegment) {
    vocabulary.known = load_named(folder, kKnownWordsName);
  }
  for (const Tokenizer* tokenizer : {vocabulary.words.get(), vocabulary.known.get()}) {
    if (tokenizer == nullptr || tokenizer->special().unknown != kNoToken) continue;
    fail(ErrorCode::kModelDamaged, "{}: expected a tokenizer of words", folder.string());
  }
  return vocabulary;
}

}  // namespace

std::string config_text(const TaggerSettings& settings, const TaggerOutputs& outputs) {
  TaggerFile config{.outputs = outputs, .settings = settings};
  return to_json(config);
}

TaggerConfigFile tagger_config_from_text(std::string_view text, const std::string& name) {
  TaggerFile config = config_from_text(TaggerFile{}, text, name, "a tagger");
  return {config.settings, config.outputs};
}

std::vector<TagSet> tag_sets(const TaggerConfigFile& file, const std::string& name) {
  check_columns(file, name);
  std::vector<TagSet> sets;
  auto begin = file.outputs.tags.begin();
  for (std::size_t c = 0; c < file.settings.model.tags.size(); ++c) {
    const std::vector<std::string> tags(begin, begin + file.settings.model.tags[c]);
    begin += file.settings.model.tags[c];
    const KeyedSet<std::string> different(tags.begin(), tags.end());
    if (different.size() != tags.size()) {
      fail(ErrorCode::kModelDamaged, "{}: expected tags that differ from each other", name);
    }
    try {
      sets.emplace_back(tags, scheme_of(file.settings.text.scheme[c]));
    } catch (const Error& error) {
      fail(ErrorCode::kModelDamaged, "{}: {}", name, error.what());
    }
  }
  return sets;
}

LoadedTagger load_tagger(const fs::path& folder) {
  const std::string name = (folder / "config.json").string();
  const TaggerConfigFile file =
      tagger_config_from_text(read_model_file(folder, "config.json"), name);
  check_config(file, name);
  LoadedTagger loaded{
      .settings = file.settings, .vocabulary = {}, .tags = tag_sets(file, name), .model = nullptr};
  const TaggerConfig& config = loaded.settings.model;
  loaded.vocabulary = load_vocabulary(folder, loaded.settings);
  loaded.model = load_model<Tagger>(folder, sizes_of, config, crf_rules(config, loaded.tags),
                                    loaded.settings.recipe.seed);
  for (const Parameter* const parameter : loaded.model->parameters()) require_finite(*parameter);
  return loaded;
}

}  // namespace fovea
