// SPDX-License-Identifier: Apache-2.0
// Trains a tagger or a segmenter on tagged sentences, into a model folder, and loads one from such
// a folder.
//
// A model folder holds config.json (with the tags), tokenizer.txt and vocab.txt (the words),
// characters.txt (their characters or subwords, if the model reads them), words.txt (of a
// segmenter: the words of its training text), and model.safetensors; a run folder also the files of
// Trainer. A checkpoint is a model folder, too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/metrics/tag_scheme.h"
#include "fovea/model/tagger.h"
#include "fovea/nn/crf.h"
#include "fovea/pretrained/encoder.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/tag/settings.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// Immutable. Types of spans have the numbers that their order in the names gives.
class TagSet {
 public:
  TagSet() = default;
  /// Throws kInputFormat for a name that is no tag of the scheme.
  TagSet(std::vector<std::string> names, std::optional<TagScheme> scheme);

  const std::vector<std::string>& names() const { return names_; }
  index size() const { return static_cast<index>(names_.size()); }
  const std::optional<TagScheme>& scheme() const { return scheme_; }
  /// The number of a tag; -1 if it is none of these.
  std::int32_t find(const std::string& name) const;
  const std::string& name(std::int32_t tag) const { return names_[static_cast<std::size_t>(tag)]; }
  /// With a scheme: what a tag says.
  const ParsedTag& parsed(std::int32_t tag) const { return parsed_[static_cast<std::size_t>(tag)]; }
  const TagTypes& types() const { return types_; }
  /// With a scheme, those that it allows; else all.
  CrfRules rules() const;

 private:
  std::vector<std::string> names_;
  std::optional<TagScheme> scheme_;
  KeyedMap<std::string, std::int32_t> numbers_;
  std::vector<ParsedTag> parsed_;
  TagTypes types_;
};

/// The rules of each tag column of a model; of one without a CRF none, for they take tags^2 bytes.
std::vector<CrfRules> crf_rules(const TaggerConfig& config, std::span<const TagSet> columns);

/// The scheme of a choice; nothing for kNone and kAuto.
std::optional<TagScheme> scheme_of(SchemeChoice choice);
SchemeChoice choice_of(const std::optional<TagScheme>& scheme);

/// The first of bio, bioes and bmes to which all these tags belong, if one of them marks a span.
std::optional<TagScheme> find_scheme(std::span<const std::string> names);

/// All tags that a model needs for a text with these: with a scheme all tags of each of its types,
/// so that every span has a path; in natural order.
std::vector<std::string> complete_tags(std::vector<std::string> names,
                                       const std::optional<TagScheme>& scheme);

/// The vocabularies of a tagger; any number of threads may read one at once.
struct TaggerVocabulary {
  std::unique_ptr<Tokenizer> words;
  std::unique_ptr<Tokenizer> characters;  ///< or subwords; null: the model reads none
  /// For a segmenter, whose words are characters: the words of the training text, to measure how
  /// well others are found; else null.
  std::unique_ptr<Tokenizer> known;
  EncoderText pieces = {};  ///< of a model that is, or began, from elsewhere, in place of these
  TokenizerData kept = {};  ///< of a model that began from elsewhere: as its folder keeps it

  bool reads_pieces() const { return pieces.tokenizer != nullptr; }

  /// The word, as one token; the unknown one for what holds white space.
  token word(const std::string& text) const;
  /// Whether the training text of a segmenter has this word.
  bool knows(const std::string& text) const;
};

/// Adds a sentence, with its tags [columns][words], if there are any. Long words are read as
/// cut_middle() says.
void append(TaggedWords& all, const TaggerVocabulary& vocabulary,
            std::span<const std::string> words,
            std::span<const std::vector<std::int32_t>> tags = {});

/// Words `begin` to `end` of a sentence.
struct WordRange {
  index begin = 0, end = 0;
};
/// `length` words in pieces of at most `most`.
std::vector<WordRange> pieces_of(index length, index most);

/// Adds a sentence whose words are cut into subwords by an encoder's tokenizer, with its tags, if
/// there are any. It is cut before a word whose subwords, with the marks, would be more than `most`
/// tokens; of a word that alone has more the last ones are left out. A word without a subword, such
/// as a joiner alone, is left out: no row is its own. Returns the places of the others in the
/// sentence.
std::vector<index> append_subwords(TaggedWords& all, const EncoderTokenizer& tokenizer, index most,
                                   std::span<const std::string> words,
                                   std::span<const std::vector<std::int32_t>> tags = {});

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
  bool is_foreign = false;  ///< a folder of Hugging Face

  /// The number of learned values.
  index parameters() const;
  /// The length beyond which a sentence is read in pieces: "--max-length (1024)".
  std::string longest() const;
  bool segments() const { return settings.text.task == TagTask::kSegment; }
  bool reads_pieces() const { return vocabulary.reads_pieces(); }
  /// The names of the tag columns.
  std::vector<std::string> columns() const { return column_names(settings.text); }
};

/// Loads a model: a folder of ours, or one of Hugging Face whose model is a
/// ...ForTokenClassification (pretrained/encoder.h). `adapters`: folders of PEFT (encoder_peft.h);
/// with their head an encoder without one is a tagger, too. Throws kModelMissing if there is none,
/// kModelWrongKind for one of another kind, kModelDamaged if files are damaged or do not belong
/// together, kOutOfMemory, and what EncoderPeft throws.
LoadedTagger load_tagger(const std::filesystem::path& folder,
                         std::span<const std::string> adapters = {});

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
