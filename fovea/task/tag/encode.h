// SPDX-License-Identifier: Apache-2.0
// Words as the numbers that a tagger reads.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/data/tagged/tagged_batch.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

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
