// SPDX-License-Identifier: Apache-2.0
// UTF-8 (RFC 3629, Unicode 15 table 3-7): strict, by position, and helpful when text is not.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
inline constexpr char32_t kLastCodePoint = 0x10FFFF;

/// A Unicode scalar value: any code point but a surrogate.
constexpr bool is_scalar_value(char32_t c) {
  return c <= kLastCodePoint && (c < 0xD800 || c > 0xDFFF);
}

enum class Utf8Status {
  kValid,
  kInvalid,
  kIncomplete,  ///< the text ends inside a character that is valid so far
};

struct DecodedCharacter {
  char32_t value;  ///< kReplacementCharacter unless valid
  int length;      ///< bytes, at least 1; otherwise of the longest start of a valid character
  Utf8Status status;
};

/// The first character of `text`, which must not be empty. Overlong forms, surrogates and anything
/// beyond U+10FFFF are invalid.
DecodedCharacter decode_character(std::string_view text);

/// Appends the 1 to 4 bytes of a scalar value; kReplacementCharacter for anything else.
void append_utf8(std::string& out, char32_t c);

/// Bytes of a scalar value in UTF-8.
constexpr int utf8_length(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

/// Characters of valid UTF-8; of other bytes, the number that do not continue a character.
index count_characters(std::string_view text);

/// Byte offset at which character `n` (from 0) begins, or the size of the text if it has fewer.
index character_offset(std::string_view text, index n);

struct InvalidUtf8 {
  index byte;         ///< offset of the character that is not one, from 0
  index line;         ///< from 1; lines end with LF
  index column;       ///< from 1, in characters
  std::string bytes;  ///< that character up to the byte that breaks it: "0xC3 0x28"
  Utf8Status status;  ///< kIncomplete where the text ends too early
};

/// The first place where `text` is not UTF-8; nothing if it is.
std::optional<InvalidUtf8> find_invalid_utf8(std::string_view text);

/// Throws kEncoding, "NAME:LINE:COLUMN: invalid UTF-8 at byte N (0xC3 0x28)" with a hint, unless
/// `text` is UTF-8.
void require_utf8(std::string_view text, std::string_view name);

/// Whether so many bytes are NUL (a tenth) that this is UTF-16 or a binary file, although NUL is
/// valid UTF-8.
bool looks_binary(std::string_view text);

/// One sentence for text that is not UTF-8: what it looks like (UTF-16, UTF-32, GB18030,
/// Windows-1252, binary, damaged UTF-8), and what to do.
std::string encoding_hint(std::string_view text);

/// `text` made safe for a terminal: control, bidirectional, private and unassigned characters as
/// \n, \t, \u{202E}; bytes that are not UTF-8 as \xFF. One line. A backslash stays as it is: what
/// was escaped before is not escaped again.
std::string escape_text(std::string_view text);

}  // namespace fovea
