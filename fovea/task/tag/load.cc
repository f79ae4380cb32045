// SPDX-License-Identifier: Apache-2.0
// The files of a tagger, and what loading one takes.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "fovea/base/check.h"
#include "fovea/config/json.h"
#include "fovea/task/load_parts.h"
#include "fovea/task/tag/run.h"
#include "fovea/task/tagger.h"
#include "fovea/train/model_folder.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// config.json: the kind of the model, what it says, then all its settings.
struct Config {
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
                        matrix(c.characters, c.character_width), matrix(c.buckets, c.ngram_width)}),
          .parameters = [c] { return parameter_count(c); },
          .bytes = [c] { return model_memory(c); }};
}

void check_config(const TaggerConfigFile& file, const fs::path& folder) {
  const std::string name = (folder / "config.json").string();
  const auto held = static_cast<index>(file.outputs.tags.size());
  if (held != file.settings.model.tags) {
    fail(ErrorCode::kModelDamaged, "{}: expected {} tags, got {}", name, file.settings.model.tags,
         held);
  }
  const std::unordered_set<std::string> different(file.outputs.tags.begin(),
                                                  file.outputs.tags.end());
  if (different.size() != file.outputs.tags.size()) {
    fail(ErrorCode::kModelDamaged, "{}: expected tags that differ from each other", name);
  }
  if (file.settings.text.scheme == SchemeChoice::kAuto) {
    fail(ErrorCode::kModelDamaged, "{}: expected a scheme, got auto", name);
  }
  const index most = file.settings.text.max_length;
  if (most < 1 || most > file.settings.model.block) {
    fail(ErrorCode::kModelDamaged, "{}: expected a max_length in 1 to {}, got {}", name,
         file.settings.model.block, most);
  }
}

TagSet tags_of(const TaggerConfigFile& file, const fs::path& folder) {
  try {
    return TagSet(file.outputs.tags, scheme_of(file.settings.text.scheme));
  } catch (const Error& error) {
    fail(ErrorCode::kModelDamaged, "{}: {}", (folder / "config.json").string(), error.what());
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
  if (config.character_reader != CharacterReader::kNone) {
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
  Config config{.outputs = outputs, .settings = settings};
  return to_json(config);
}

TaggerConfigFile tagger_config_from_text(std::string_view text, const std::string& name) {
  require_model_kind(text, name, kTaggerKind, "a tagger");
  Config config;
  from_json(text, {name, ErrorCode::kModelDamaged}, config, MissingKeys::kKeepTheirValue);
  return {config.settings, config.outputs};
}

LoadedTagger load_tagger(const fs::path& folder) {
  TaggerConfigFile file = tagger_config_from_text(read_model_file(folder, "config.json"),
                                                  (folder / "config.json").string());
  check_config(file, folder);
  LoadedTagger loaded{
      .settings = file.settings, .vocabulary = {}, .tags = tags_of(file, folder), .model = nullptr};
  const TaggerConfig& config = loaded.settings.model;
  loaded.vocabulary = load_vocabulary(folder, loaded.settings);
  const Safetensors tensors = read_fitting_weights(folder, [&] { return sizes_of(config); });
  loaded.model = std::make_unique<Tagger>(config, loaded.tags.rules(), loaded.settings.recipe.seed);
  restore_parameters(loaded.model->parameters(), tensors, (folder / kWeightsName).string());
  return loaded;
}

}  // namespace fovea
