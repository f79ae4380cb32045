// SPDX-License-Identifier: Apache-2.0
// Vectors of words from a file of text: word2vec's text format, fastText's .vec and GloVe, packed
// by gzip or zstd or not.
//
//     2 3              the number of vectors and their width; GloVe's files lack this line
//     the .1 -.2 3e-1
//     Paris 1 0 .5
//
// A file whose name ends in .npz holds arrays:
//
//   words    texts ("<U.."): [N]
//   vectors  float32, float64: [N, D]
//
// Other arrays are not read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/types.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

inline constexpr index kWidestVector = 1 << 16;

/// How a word was found.
enum class VectorMatch : std::uint8_t {
  kNone,
  kLower,  ///< the file has it in other case; of several such words the first counts
  kExact,
};

struct WordVectors {
  index width = 0;
  std::vector<float> rows;         ///< [words, width]; of words that were not found 0
  std::vector<VectorMatch> match;  ///< [words]
  std::vector<std::string> notes;  ///< warnings about the file

  index count(VectorMatch match) const;
};

/// Takes the words of a file one after another. A word counts for words that are spelled like it,
/// and in other case for those that have nothing better. If a word occurs twice, the first counts.
class VectorTable {
 public:
  /// An empty word is not wanted. `width`: which the vectors must have; 0: any.
  VectorTable(std::span<const std::string> words, index width);

  /// Before the first word: the width of the file `name`. Throws kOptionValue, which names --width,
  /// and kOutOfMemory.
  void begin(index width, const std::string& name);
  index width() const { return found_.width; }

  /// Calls fill(row [width]) for each row that this word of the file gives.
  void take(const std::string& word, const std::function<void(std::span<float>)>& fill);
  /// How many words occurred again that had been found as they are spelled.
  index repeated() const { return repeated_; }

  void note(std::string text) { found_.notes.push_back(std::move(text)); }
  WordVectors take() { return std::move(found_); }

 private:
  void store(index word, VectorMatch match, const std::function<void(std::span<float>)>& fill);

  index words_;
  KeyedMap<std::string, index> exact_;
  KeyedMap<std::string, std::vector<index>> lower_;
  WordVectors found_;
  index repeated_ = 0;
};

/// Reads the vectors of `words`; an empty word has none. The file is read once, line by line, so it
/// may have any length or be a pipe; only vectors of words in `words` are kept. If a word occurs
/// twice, the first counts. Lines of other words must have `width` columns; their numbers are not
/// read.
///
/// `width`: which the vectors must have (kOptionValue, which names --width); 0: any.
/// Throws kEmptyInput; kEncoding; kInputFormat, "FILE:LINE: ...", for another number of columns,
/// for what is no finite number, a line of more than 4 MiB, a header that gives another number of
/// vectors, and binary files; kOutOfMemory; and what open_text and read_npz_vectors throw.
WordVectors read_word_vectors(const std::string& file, std::span<const std::string> words,
                              index width = 0);
/// Reads the vectors from a stream. `name` begins messages.
WordVectors read_word_vectors(std::unique_ptr<ByteStream> stream, const std::string& name,
                              std::span<const std::string> words, index width = 0);

/// As read_word_vectors. All vectors are checked, also those of words that are not wanted. Throws
/// kOptionValue, which names --width; kEmptyInput for a file without bytes or words; kInputFormat,
/// which names file, array and word: no .npz file, a damaged one, an array that is missing or of
/// another type or shape, a number that is not finite; kOutOfMemory; what FileSource throws.
WordVectors read_npz_vectors(const std::string& file, std::span<const std::string> words,
                             index width = 0);

}  // namespace fovea
