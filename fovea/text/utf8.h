// SPDX-License-Identifier: Apache-2.0
// Strict UTF-8 (RFC 3629, Unicode 15 table 3-7). Errors give the position of invalid text and a
// hint.
#pragma once

#include <cstdint>
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
  int length;      ///< bytes; if not valid, of the longest start of a valid character, at least 1
  Utf8Status status;
};

/// The first character of `text`, which must not be empty. Overlong forms, surrogates and anything
/// beyond U+10FFFF are invalid.
DecodedCharacter decode_character(std::string_view text);

struct TakenCharacter {
  char32_t value;          ///< as DecodedCharacter has it
  std::string_view bytes;  ///< of the text it was taken from
  Utf8Status status;
};

/// Takes the first character, as decode_character() finds it, off a text, which must not be empty.
inline TakenCharacter take_character(std::string_view& text) {
  const auto [value, length, status] = decode_character(text);
  const std::string_view bytes = text.substr(0, static_cast<std::size_t>(length));
  text.remove_prefix(bytes.size());
  return {value, bytes, status};
}

/// Appends the 1 to 4 bytes of a scalar value; kReplacementCharacter for anything else.
void append_utf8(std::string& out, char32_t c);

/// Bytes of a scalar value in UTF-8.
constexpr int utf8_length(char32_t c) { return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4; }

/// The text with U+FFFD in place of each invalid character, as Python's errors="replace" has it.
std::string valid_utf8(std::string_view text);

/// The number of characters of valid UTF-8. In other text, the number of bytes that do not continue
/// a character.
index count_characters(std::string_view text);

/// Byte offset at which character `n` (from 0) begins, or the size of the text if it has fewer.
index character_offset(std::string_view text, index n);

struct InvalidUtf8 {
  index byte;         ///< offset of the invalid character, from 0
  index line;         ///< from 1; lines end with LF
  index column;       ///< from 1, in characters
  std::string bytes;  ///< the invalid character, up to the byte that makes it so: "0xC3 0x28"
  Utf8Status status;  ///< kIncomplete where the text ends too early
};

/// The first place where `text` is not UTF-8; nothing if it is.
std::optional<InvalidUtf8> find_invalid_utf8(std::string_view text);

/// Throws kEncoding, "NAME:LINE:COLUMN: invalid UTF-8 at byte N (0xC3 0x28)" with a hint, unless
/// `text` is UTF-8.
void require_utf8(std::string_view text, std::string_view name);

/// Whether Unicode calls the character white space (the property White_Space of Unicode 15): 25
/// characters, from tab and space to the ideographic space. The no-break space is one of them,
/// U+200B and U+FEFF are not.
bool is_white_space(char32_t c);

/// Whether Unicode calls the character a letter, a mark or a number, or it joins such (U+200C and
/// U+200D): what words are made of.
bool is_word_character(char32_t c);

/// Whether Unicode calls the character a letter (L), or a number (N).
bool is_letter(char32_t c);
bool is_number(char32_t c);

/// Whether what a reader sees as one character (an extended grapheme cluster, Unicode Standard
/// Annex 29) may end between two characters of a text that follow each other: not before a
/// combining mark. `state` is 0 at the first pair of a text, and is kept from one pair to the next.
bool is_grapheme_break(char32_t before, char32_t after, std::int32_t& state);

/// Bytes of the white-space character at the front of valid UTF-8; 0 if another one is there, or
/// none.
std::size_t white_space_at_front(std::string_view text);

/// Whether all of its characters are white space, or it is empty.
bool is_blank(std::string_view text);

/// Whether the last character is white space.
bool ends_with_white_space(std::string_view text);

/// Valid UTF-8 in Unicode's normal form C: letters and their marks are one character where there is
/// one.
std::string composed(std::string_view text);

/// The lower-case form of a character: the simple mapping of Unicode, one character to one.
/// Python's str.lower differs in two places: it makes two characters of U+0130 (a capital I with a
/// dot; here "i"), and a capital sigma at the end of a word becomes a final sigma (here never).
char32_t lower_character(char32_t c);

/// Valid UTF-8, each character by lower_character.
std::string lower_text(std::string_view text);
/// Appends the same.
void append_lower(std::string& out, std::string_view text);

/// Whether at least a tenth of the bytes are NUL. NUL is valid UTF-8, but such a text is probably
/// UTF-16 or a binary file.
bool looks_binary(std::string_view text);

/// A hint for text that is not UTF-8, in one sentence: which encoding it seems to have (UTF-16,
/// UTF-32, GB18030, Windows-1252, binary, damaged UTF-8, packed by xz or the like), and what to do.
std::string encoding_hint(std::string_view text);

/// Makes text safe for a terminal, in one line: control, bidirectional, private and unassigned
/// characters become \n, \t, \u{202E}; bytes that are not UTF-8 become \xFF. A backslash stays as
/// it is, so text that is escaped already is not escaped twice.
std::string escape_text(std::string_view text);
/// escape_text for several lines: tabs and ends of lines (LF, CR LF) stay. An escape is one that
/// JSON has, too, so an object stays one: \u202E, for characters beyond U+FFFF two.
std::string escape_lines(std::string_view text);

/// escape_text of the first 60 characters at most; "..." stands for the rest. For messages.
std::string excerpt(std::string_view text);

// NUL is valid UTF-8, but no text.

/// The hint for a NUL in a file that looks like text otherwise.
inline constexpr std::string_view kRemoveNuls = "remove the NUL bytes: tr -d '\\0'";

/// Throws kEncoding, "NAME:LINE:COLUMN: expected text, got a NUL byte" with a hint, if there is
/// one.
void require_no_nul(std::string_view text, std::string_view name);

}  // namespace fovea
