// SPDX-License-Identifier: Apache-2.0
// --embeddings: vectors of a file become rows of the table of tokens.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fovea/data/word_vectors.h"
#include "fovea/grad/parameter.h"
#include "fovea/text/tokenizer.h"

namespace fovea {

/// How many words of the vocabulary began with a vector of a file.
struct VectorCounts {
  index words = 0;  ///< of the vocabulary; 0: there was no file
  index exact = 0;  ///< were found as they are spelled
  index lower = 0;  ///< were found in other case

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("words", words, "words of the vocabulary; 0: no file of vectors");
    visit("exact", exact, "of these, found as they are spelled");
    visit("lower", lower, "of these, found in other case");
  }
};

/// The vectors of the tokens that stand for text; the others have none. Those of the file must have
/// this width; 0: any. Throws as read_word_vectors does.
WordVectors vectors_of_tokens(const Tokenizer& tokenizer, const std::string& file, index width);

/// Counts the tokens that could have a vector, and those that have one.
VectorCounts count_vectors(const Tokenizer& tokenizer, const WordVectors& vectors);

/// "words with a vector of FILE: 80 of 100 (80.0 %), 72 as spelled and 8 in other case".
std::string vectors_line(const VectorCounts& counts, const std::string& file);

/// Takes the vectors of a file into a run, and their width into `width` if that is 0.
template <class Run>
void read_vectors(Run& run, const Tokenizer& words, const std::string& file, index& width) {
  run.vectors = vectors_of_tokens(words, file, width);
  width = run.vectors->width;
  run.notes.insert(run.notes.end(), run.vectors->notes.begin(), run.vectors->notes.end());
  const VectorCounts found = run.outputs.vectors = count_vectors(words, *run.vectors);
  run.overview.push_back(vectors_line(found, file));
  if (found.exact + found.lower > 0) return;
  run.notes.push_back("no word has a vector: is the file of the same language and script?");
}

/// The rows of what was found, in the table of this name; its other rows stay.
void start_with_vectors(std::span<Parameter* const> parameters, std::string_view table,
                        const WordVectors& vectors);

}  // namespace fovea
