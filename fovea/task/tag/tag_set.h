// SPDX-License-Identifier: Apache-2.0
// The tags of a model: their names, what they mark, and which may follow each other; and words as
// the numbers that a tagger reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/metrics/tag_scheme.h"
#include "fovea/nn/crf.h"
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

}  // namespace fovea
