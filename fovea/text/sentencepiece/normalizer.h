// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fovea/text/sentencepiece/charsmap.h"
#include "fovea/text/sentencepiece/piece_model.h"
#include "fovea/text/sentencepiece/piece_trie.h"

namespace fovea {

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
