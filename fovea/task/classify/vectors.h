// SPDX-License-Identifier: Apache-2.0
// --embeddings: vectors of a file become rows of the table of tokens.
#pragma once

#include <string>

#include "fovea/data/word_vectors.h"
#include "fovea/task/classify/classifier.h"

namespace fovea {

/// Where the weights of a run come from: kNew reads its file of word vectors, kStored does not.
enum class RunWeights { kNew, kStored };

/// The vectors of the tokens that stand for text; the others have none. Fills in the width of the
/// model if it is 0. Throws as read_word_vectors does.
WordVectors vectors_of_tokens(const Tokenizer& tokenizer, ClassifierSettings& settings);

/// The vectors of a file, which must have this width; 0: any.
WordVectors vectors_of_tokens(const Tokenizer& tokenizer, const std::string& file, index width);

/// Counts the tokens that could have a vector, and those that have one.
VectorCounts count_vectors(const Tokenizer& tokenizer, const WordVectors& vectors);

/// "words with a vector of FILE: 80 of 100 (80.0 %), 72 as spelled and 8 in other case".
std::string vectors_line(const VectorCounts& counts, const std::string& file);

/// The rows of what was found, in the table of a model; its other rows stay.
void start_with_vectors(const Classifier& model, const WordVectors& vectors);
/// Fills in the rows in this table.
void start_with_vectors(Parameter& table, const WordVectors& vectors);

}  // namespace fovea
