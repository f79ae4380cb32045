// SPDX-License-Identifier: Apache-2.0
// The rules by which SentencePiece rewrites text, such as NFKC: prefixes, and what replaces them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// The bytes are: the size of a trie (4 bytes, little-endian), the trie, texts that end with NUL.
/// The trie is a double array (Aoe 1989, "An efficient digital search algorithm by using a
/// double-array structure"), as darts-clone writes it: 32 bits for each unit.
class CharsMap {
 public:
  /// Without rules.
  CharsMap() = default;
  /// Throws kModelDamaged, which begins with `name`, unless sizes fit, each rule ends inside of the
  /// trie and of the texts, the trie has no cycles, and no rule is for more than kLongestPiece
  /// bytes (piece_model.h).
  CharsMap(std::string_view bytes, std::string_view name);

  bool empty() const { return units_.empty(); }

  struct Match {
    std::size_t length = 0;  ///< bytes of the text; 0: no rule
    std::string_view replacement = {};
  };
  /// The rule with the longest prefix of the text.
  Match longest(std::string_view text) const;

 private:
  struct Walk;

  bool is_child(std::size_t at, unsigned char label) const;
  std::size_t children_of(std::size_t at) const;
  std::string_view text_at(std::uint32_t place) const;
  void check_trie(std::string_view name) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  std::array<bool, 256> begins_ = {};  // whether a rule begins with this byte
};

}  // namespace fovea
