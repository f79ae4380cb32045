// SPDX-License-Identifier: Apache-2.0
// The data of a tokenizer, and the file that stores it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

using token = std::int32_t;

/// Every vocabulary begins with the same ids: three special tokens, then one token for each byte,
/// so that any text can be encoded. The learned tokens follow.
inline constexpr token kPadToken = 0;
inline constexpr token kBeginToken = 1;
inline constexpr token kEndToken = 2;
inline constexpr token kFirstByteToken = 3;
inline constexpr token kFirstLearnedToken = kFirstByteToken + 256;

constexpr token byte_token(char byte) { return kFirstByteToken + static_cast<unsigned char>(byte); }

/// The stored part of a tokenizer.
struct TokenizerData {
  std::string kind;                       ///< a name in kTokenizers
  std::vector<char32_t> characters = {};  ///< those of the ids from kFirstLearnedToken on

  bool operator==(const TokenizerData&) const = default;
};

/// The distinct characters of `text`, the most frequent first, equally frequent ones by code point.
/// Throws kEncoding, naming `name`, if the text is not UTF-8.
std::vector<char32_t> characters_by_frequency(std::string_view text, std::string_view name);

/// The file `tokenizer.txt`. The same data gives the same bytes, all of them ASCII:
///
///     fovea-tokenizer 1
///     kind char
///     characters 2
///     U+0065
///     U+4E2D
///     checksum e1299cf1ea23fe0d
///
/// One line each, in this order, each ended by LF; the checksum is FNV-1a (64 bits) of every byte
/// before its line.
std::string to_text(const TokenizerData& data);

/// Reads exactly what to_text writes. Throws kModelDamaged, which gives the file `name`, the line,
/// what was expected and what was found.
TokenizerData tokenizer_data_from_text(std::string_view text, std::string_view name);

}  // namespace fovea
