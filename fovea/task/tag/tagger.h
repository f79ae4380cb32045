// SPDX-License-Identifier: Apache-2.0
// Trains a tagger or a segmenter on tagged sentences, into a model folder, and loads one from such
// a folder.
//
// A model folder holds config.json (with the tags), tokenizer.txt and vocab.txt (the words),
// characters.txt (their characters or subwords, if the model reads them), words.txt (of a
// segmenter: the words of its training text), and model.safetensors; a run folder also the files of
// Trainer. A checkpoint is a model folder, too.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model/tagger.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/tag/settings.h"
#include "fovea/task/tag/tag_set.h"

namespace fovea {

/// config.json: "kind" of a tagger.
inline constexpr std::string_view kTaggerKind = "tagger";
inline constexpr std::string_view kCharactersName = "characters.txt";
inline constexpr std::string_view kKnownWordsName = "words.txt";

/// The outputs of a tagger, which its configuration lists beside its settings.
struct TaggerOutputs {
  std::vector<std::string> tags = {};  ///< in the order of the scores, column after column
  VectorCounts vectors = {};           ///< of --embeddings
};

struct LoadedTagger {
  TaggerSettings settings;
  TaggerVocabulary vocabulary;
  std::vector<TagSet> tags;  ///< of each tag column
  std::unique_ptr<Tagger> model;

  bool segments() const { return settings.text.task == TagTask::kSegment; }
  /// The names of the tag columns.
  std::vector<std::string> columns() const { return column_names(settings.text); }
};

/// Loads a model. Throws kModelMissing if there is none, kModelWrongKind for one of another kind,
/// kModelDamaged if files are damaged or do not belong together, kOutOfMemory.
LoadedTagger load_tagger(const std::filesystem::path& folder);

/// The text of config.json.
std::string config_text(const TaggerSettings& settings, const TaggerOutputs& outputs);

struct TaggerConfigFile {
  TaggerSettings settings;
  TaggerOutputs outputs;
};
/// Reads the text that config_text wrote; `name` is the file's name in errors. Throws
/// kModelWrongKind, kModelDamaged.
TaggerConfigFile tagger_config_from_text(std::string_view text, const std::string& name);

/// The tags of each column. Throws kModelDamaged, which names the file `name`, if its tags do not
/// fit together.
std::vector<TagSet> tag_sets(const TaggerConfigFile& file, const std::string& name);

}  // namespace fovea
