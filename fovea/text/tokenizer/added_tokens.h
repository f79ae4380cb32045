// SPDX-License-Identifier: Apache-2.0
// Texts that are one token wherever they stand, as the library `tokenizers` finds them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

/// Where the white space at the end of a text begins.
std::size_t begin_of_last_space(std::string_view text);

/// A text that is one token wherever it stands.
struct AddedToken {
  std::string text;
  token id = kNoToken;
  bool is_mark = true;       ///< stands for no text: [SEP]
  bool normalized = false;   ///< it is looked for in the text that the normalizer has written
  bool takes_left = false;   ///< with the white space before it
  bool takes_right = false;  ///< with that behind it
};

/// Immutable; any number of threads may use one at once.
class AddedTokens {
 public:
  AddedTokens() = default;
  /// Of two with the same text the first counts; none is empty. Throws kModelDamaged for a text of
  /// more than kLongestPiece bytes: a text is read that far ahead at each character.
  explicit AddedTokens(std::vector<AddedToken> added);

  /// Goes through a text: calls plain(begin, text) for what stands between added tokens, which is
  /// never empty, and marked(added) for each of them. Of those that begin at one place the longest
  /// is meant.
  template <class Plain, class Marked>
  void split(std::string_view text, const Plain& plain, const Marked& marked) const {
    std::size_t done = 0;
    for (std::size_t from = 0; from < text.size();) {
      const Found found = find(text, from, done);
      if (found.added == nullptr) break;
      if (done < found.begin) plain(done, text.substr(done, found.begin - done));
      marked(*found.added);
      from = found.end;
      done = found.taken;
    }
    if (done < text.size()) plain(done, text.substr(done));
  }

 private:
  struct Found {
    const AddedToken* added = nullptr;
    std::size_t begin = 0, end = 0;  // with the white space before it; of its text
    std::size_t taken = 0;           // with the white space behind it
  };
  // The next one from `from` on, behind white space from `done` on.
  Found find(std::string_view text, std::size_t from, std::size_t done) const;

  std::vector<AddedToken> added_;
  PieceTrie trie_;  // of their texts; its ids are places in added_
};

}  // namespace fovea
