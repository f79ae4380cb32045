// SPDX-License-Identifier: Apache-2.0
// Trains a translator on pairs of sentences, into a model folder, and loads one from such a folder.
//
// A model folder holds config.json, tokenizer.txt (and vocab.txt, if its tokens are words) of the
// source, target-tokenizer.txt and target-vocab.txt of the target unless the vocabulary is shared,
// and model.safetensors; a run folder also the files of Trainer. A checkpoint is a model folder,
// too.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "fovea/data/parallel/pair_batch.h"
#include "fovea/model/translator.h"
#include "fovea/task/decode/beam_search.h"
#include "fovea/task/translate/settings.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// config.json: "kind" of a translator.
inline constexpr std::string_view kTranslatorKind = "translator";
inline constexpr std::string_view kTargetTokenizerName = "target-tokenizer.txt";
inline constexpr std::string_view kTargetWordListName = "target-vocab.txt";

/// The tokenizers of both sides; any number of threads may read them at once. Both have begin and
/// end marks.
struct TranslatorVocabulary {
  std::unique_ptr<Tokenizer> of_source;
  std::unique_ptr<Tokenizer> of_target;  ///< null: that of the source
  /// Of a translator from elsewhere: what it writes has no blanks at its ends, and with `cleans`
  /// none before punctuation. It may write the unknown word.
  bool is_foreign = false, cleans = false;
  std::map<token, std::string> marks = {};  ///< of such a one: ForeignVocabularies::marks
  std::vector<token> more_ends = {};        ///< of such a one: SearchTask::more_ends

  const Tokenizer& source() const { return *of_source; }
  const Tokenizer& target() const { return of_target ? *of_target : *of_source; }
  PairTokenizers both() const { return {source(), target()}; }
};

struct LoadedTranslator {
  TranslatorSettings settings;
  TranslatorVocabulary vocabulary;
  std::unique_ptr<Translator> model;
  SearchOptions search = {};  ///< how it translates unless a user says otherwise
};

/// Loads a model, also a folder of Hugging Face (pretrained/translator.h). Throws kModelMissing if
/// there is none, kModelWrongKind for one of another kind, kModelDamaged if files are damaged or do
/// not belong together, kOutOfMemory.
LoadedTranslator load_translator(const std::filesystem::path& folder);
/// Its vocabularies alone.
TranslatorVocabulary load_vocabulary(const std::filesystem::path& folder,
                                     const TranslatorSettings& settings);
/// Its weights, with what `config` changes of what is in its config.json.
Translator load_weights_of(const std::filesystem::path& folder, const TranslatorConfig& config,
                           std::uint64_t seed);

/// The text of config.json, and the settings from that text; `name` is the file's name in errors.
/// Throws kModelWrongKind, kModelDamaged.
std::string config_text(const TranslatorSettings& settings);
TranslatorSettings translator_settings_from_text(std::string_view text, const std::string& name);

/// Bytes of the values of a model.
double model_memory(const TranslatorConfig& config);

}  // namespace fovea
