// SPDX-License-Identifier: Apache-2.0
// The ids of the words of a vocabulary, found without a copy of the word.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// A hash table with open addressing, for many look-ups: a word of at most eight bytes is found in
/// one line of memory, for its bytes stand in the table itself.
class WordTable {
 public:
  /// Room for so many words.
  explicit WordTable(std::size_t words);

  /// False, and nothing is added, if the word is there already. The table keeps a view of it; it
  /// must not be empty, and there must be room.
  bool add(std::string_view word, token id);
  /// Its id; kNoToken if it was not added.
  token find(std::string_view word) const;

 private:
  struct Slot {
    std::uint64_t start = 0;  // the first bytes of the word
    std::string_view word = {};
    token id = kNoToken;
  };

  // The slot of the word, or the empty one where it would be.
  std::size_t place_of(std::string_view word, std::uint64_t start) const;

  std::vector<Slot> slots_;  // as many as a power of two
  std::size_t used_ = 0;
};

}  // namespace fovea
