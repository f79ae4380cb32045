// SPDX-License-Identifier: Apache-2.0
// The rules by which SentencePiece rewrites text, such as NFKC: prefixes, and what replaces them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/text/sentencepiece/piece_model.h"

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
  /// The one with the shortest.
  Match shortest(std::string_view text) const;

 private:
  struct Walk;

  // Calls f for each rule with a prefix of the text, shortest first, until it returns false.
  template <class F>
  void visit(std::string_view text, F&& f) const;
  bool is_child(std::size_t at, unsigned char label) const;
  std::size_t children_of(std::size_t at) const;
  std::string_view text_at(std::uint32_t place) const;
  void check_trie(std::string_view name) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  std::array<bool, 256> begins_ = {};  // whether a rule begins with this byte
};

/// A text that rules write, while it grows. A rule may make any number of bytes of one, so its
/// bytes are counted before any of them is looked at or kept: 64 of each byte that there was, and
/// 64 KiB.
class GrowingText {
 public:
  /// `bytes` of the text that is rewritten.
  explicit GrowingText(std::size_t bytes) : bytes_(bytes) {}

  /// Throws kInputFormat, kOutOfMemory.
  void count(std::string_view replacement);

 private:
  const std::size_t bytes_;
  std::size_t made_ = 0;
  GrowingMemory memory_{"a line with the model's rules", "use shorter lines"};
};

/// Bytes of the character that begins with this byte, as its first bits say.
std::size_t announced_length(char first);

/// Rewrites text as SentencePiece does before it cuts it. User-defined pieces stay as they are.
class PieceNormalizer {
 public:
  /// The model must outlive it. Throws kModelDamaged for rules that contradict themselves.
  PieceNormalizer(const PieceModel& model, std::string_view name);

  /// A byte that is not UTF-8 becomes U+FFFD. Throws kInputFormat before rules make 64 times as
  /// many bytes and 64 KiB, kOutOfMemory.
  std::string normalize(std::string_view text) const;
  /// The rules for decoded text. Throws the same.
  std::string denormalize(std::string_view text) const;

  /// Bytes of the longest user-defined piece at the front of the text; 0: none.
  std::size_t user_defined_prefix(std::string_view text) const {
    return user_defined_.longest_prefix(text);
  }

 private:
  // One rule, one user-defined piece or one character at the front of the text.
  CharsMap::Match step(std::string_view text) const;
  void append(std::string& out, std::string_view text) const;

  const NormalizerSettings& settings_;
  const bool space_is_suffix_;
  const CharsMap map_, denormalizer_;
  const PieceTrie user_defined_;
};

}  // namespace fovea
