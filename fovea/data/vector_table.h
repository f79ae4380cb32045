// SPDX-License-Identifier: Apache-2.0
// The vectors of the words that are wanted, as a file of vectors fills them in.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace fovea
