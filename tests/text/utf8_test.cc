// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fovea/base/error.h"
#include "fovea/base/random.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;

using namespace std::string_view_literals;

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

// RFC 3629, section 3, by arithmetic on ranges: the definition the fast code is tested against.
std::string encode_plainly(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 + c / 64), byte(0x80 + c % 64)};
  if (c < 0x10000) return {byte(0xE0 + c / 4096), byte(0x80 + c / 64 % 64), byte(0x80 + c % 64)};
  return {byte(0xF0 + c / 262144), byte(0x80 + c / 4096 % 64), byte(0x80 + c / 64 % 64),
          byte(0x80 + c % 64)};
}

TEST(Utf8, EncodesAndDecodesEveryScalarValue) {
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (!is_scalar_value(c)) continue;
    const std::string bytes = utf8(c);
    ASSERT_EQ(bytes, encode_plainly(c));
    const DecodedCharacter back = decode_character(bytes);
    ASSERT_EQ(back.status, Utf8Status::kValid);
    ASSERT_EQ(back.value, c);
    ASSERT_EQ(static_cast<std::size_t>(back.length), bytes.size());
  }
}

TEST(Utf8, WritesAReplacementForWhatIsNoScalarValue) {
  EXPECT_EQ(utf8(0xD800), "\uFFFD");
  EXPECT_EQ(utf8(0x110000), "\uFFFD");
}

// Every sequence of three bytes, and four with the last fixed: valid exactly if it is what
// encoding some scalar value gives.
TEST(Utf8, AcceptsNothingThatEncodingDoesNotGive) {
  index valid = 0;
  for (std::uint32_t word = 0x800000; word < 0x1000000; ++word) {
    const char bytes[4] = {static_cast<char>(word >> 16), static_cast<char>(word >> 8),
                           static_cast<char>(word), static_cast<char>(0x80)};
    const DecodedCharacter c = decode_character({bytes, 4});
    const auto length = static_cast<std::size_t>(c.length);
    ASSERT_LE(length, 4u);
    if (c.status != Utf8Status::kValid) continue;
    ASSERT_EQ(utf8(c.value), std::string(bytes, length));
    ++valid;
  }
  // 1920 of two bytes x 2^8, 61440 of three, 1048576 / 64 of four.
  EXPECT_EQ(valid, 1920 * 256 + 61440 + 16384);
}

struct BadText {
  std::string_view text;
  index byte, line, column;
  std::string_view bytes;
  Utf8Status status;
};

TEST(Utf8, SaysWhereTextBreaks) {
  const BadText cases[] = {
      {"\x80"sv, 0, 1, 1, "0x80", Utf8Status::kInvalid},
      {"ab\nc\xC3\x28"sv, 4, 2, 2, "0xC3 0x28", Utf8Status::kInvalid},
      {"一二\n三\xFF四"sv, 10, 2, 2, "0xFF", Utf8Status::kInvalid},
      {"a\r\n\r\n\xC0\xAF"sv, 5, 3, 1, "0xC0", Utf8Status::kInvalid},
      {"\xED\xA0\x80"sv, 0, 1, 1, "0xED 0xA0", Utf8Status::kInvalid},
      {"\xE0\x80\x80"sv, 0, 1, 1, "0xE0 0x80", Utf8Status::kInvalid},
      {"\xF4\x90\x80\x80"sv, 0, 1, 1, "0xF4 0x90", Utf8Status::kInvalid},
      {"\xF0\x9F\x98zz"sv, 0, 1, 1, "0xF0 0x9F 0x98 0x7A", Utf8Status::kInvalid},
      {"abcdefghijklmnop\xE4\xBD"sv, 16, 1, 17, "0xE4 0xBD", Utf8Status::kIncomplete},
  };
  for (const BadText& c : cases) {
    SCOPED_TRACE(escape_text(c.text));
    const auto found = find_invalid_utf8(c.text);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->byte, c.byte);
    EXPECT_EQ(found->line, c.line);
    EXPECT_EQ(found->column, c.column);
    EXPECT_EQ(found->bytes, c.bytes);
    EXPECT_EQ(found->status, c.status);
  }
}

TEST(Utf8, AcceptsAllOfUnicodeAndNothing) {
  EXPECT_FALSE(find_invalid_utf8(""));
  EXPECT_FALSE(find_invalid_utf8("\0\0"sv));
  std::string all;
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (is_scalar_value(c)) append_utf8(all, c);
  }
  EXPECT_FALSE(find_invalid_utf8(all));
  EXPECT_EQ(count_characters(all), 0x110000 - 0x800);
}

// A broken byte anywhere in a long text is found at its place, whatever lies around it.
TEST(Utf8, FindsOneBrokenByteAnywhere) {
  Random random(1, RandomUse::kTest);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    const index length = random.below(60);
    for (index i = 0; i < length; ++i) text += random.below(2) == 0 ? "a" : "字";
    const index characters = count_characters(text);
    const index bytes = static_cast<index>(text.size());
    text += "\xFF";
    for (index i = random.below(20); i > 0; --i) text += "é";
    const auto found = find_invalid_utf8(text);
    ASSERT_TRUE(found.has_value());
    ASSERT_EQ(found->byte, bytes);
    ASSERT_EQ(found->column, characters + 1);
  }
}

TEST(Utf8, CountsAndFindsCharacters) {
  constexpr std::string_view text = "a字é😀b";
  EXPECT_EQ(count_characters(text), 5);
  const index offsets[] = {0, 1, 4, 6, 10, 11, 11};
  for (index n = 0; n < 7; ++n) EXPECT_EQ(character_offset(text, n), offsets[n]);
}

TEST(Utf8, RequireThrowsAnErrorThatNamesThePlace) {
  try {
    require_utf8("good\nbad \xC3\x28", "train.zh");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kEncoding);
    EXPECT_STREQ(error.what(), "train.zh:2:5: invalid UTF-8 at byte 9 (0xC3 0x28)");
    EXPECT_NE(error.hint(), "");
  }
  try {
    require_utf8("你\xE5\xA5", "t");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "t:1:2: text ends inside a character at byte 3 (0xE5 0xA5)");
  }
}

TEST(EscapeText, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(escape_text("plain 字 é 😀"), "plain 字 é 😀");
  EXPECT_EQ(escape_text("a\tb\r\n\0"sv), "a\\tb\\r\\n\\u{0}");
  EXPECT_EQ(escape_text("\x1B[31m"), "\\u{1B}[31m");
  EXPECT_EQ(escape_text("\u202Eevil\u2028"), "\\u{202E}evil\\u{2028}");
  EXPECT_EQ(escape_text("\uFEFF\uE000"), "\\u{FEFF}\\u{E000}");
  EXPECT_EQ(escape_text("a\\n\xFF"), "a\\n\\xFF");
  EXPECT_EQ(escape_text(escape_text("\x1B[31m\n\xFF")), escape_text("\x1B[31m\n\xFF"));
  EXPECT_EQ(escape_text("👩\u200D👧"), "👩\u200D👧");
}

TEST(EscapeLines, KeepsLinesAndJson) {
  EXPECT_EQ(escape_lines("plain 字 é 😀\tb\r\nc\n"), "plain 字 é 😀\tb\r\nc\n");
  EXPECT_EQ(escape_lines("\x1B[31ma\rb\r"), "\\u001B[31ma\\u000Db\\u000D");
  EXPECT_EQ(escape_lines("\u009B\u202E\u2028"), "\\u009B\\u202E\\u2028");
  EXPECT_EQ(escape_lines("\U000E0041\U0010FFFF"), "\\uDB40\\uDC41\\uDBFF\\uDFFF");
  EXPECT_EQ(escape_lines("\xFF\xE5\xA5"), "\\xFF\\xE5\\xA5");
}

TEST(Excerpt, EndsWithACharacter) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "好";
  EXPECT_EQ(excerpt(text), text);
  EXPECT_EQ(excerpt(text + "x"), text + "...");
  EXPECT_EQ(excerpt("a\n\xFF"), "a\\n\\xFF");
  EXPECT_EQ(excerpt(""), "");
}

TEST(WhiteSpace, IsFoundAtBothEnds) {
  EXPECT_EQ(white_space_at_front(" a"), 1u);
  EXPECT_EQ(white_space_at_front("\u00A0a"), 2u);
  EXPECT_EQ(white_space_at_front("\u3000"), 3u);
  EXPECT_EQ(white_space_at_front("a "), 0u);
  EXPECT_EQ(white_space_at_front("\u00A1"), 0u);
  EXPECT_EQ(white_space_at_front("\u72D0"), 0u);
  EXPECT_EQ(white_space_at_front(""), 0u);
  EXPECT_TRUE(ends_with_white_space("a "));
  EXPECT_TRUE(ends_with_white_space("\u3000"));
  EXPECT_FALSE(ends_with_white_space("\u3000a"));
  EXPECT_FALSE(ends_with_white_space("\u72D0"));
  EXPECT_FALSE(ends_with_white_space(""));
}

// As Python's str.lower, but for the two that the header names.
TEST(LowerText, IsTheSimpleMappingOfUnicode) {
  EXPECT_EQ(lower_text("The LITTLE prince 42"), "the little prince 42");
  EXPECT_EQ(lower_text("\u00C9\u00DF \u0416 \u0391 \u72D0 \u01C4"),
            "\u00E9\u00DF \u0436 \u03B1 \u72D0 \u01C6");
  EXPECT_EQ(lower_text("\u023A\u212A"), "\u2C65k");  // longer and shorter in UTF-8
  EXPECT_EQ(lower_text("\u0130"), "i");
  EXPECT_EQ(lower_text("\u039F\u03A3"), "\u03BF\u03C3");
  EXPECT_EQ(lower_text(std::string_view("A\0B", 3)), std::string_view("a\0b", 3));
  EXPECT_EQ(lower_text(""), "");
  for (char32_t c = 0; c <= kLastCodePoint; ++c) {
    if (is_scalar_value(c)) {
      ASSERT_TRUE(is_scalar_value(lower_character(c))) << static_cast<std::uint32_t>(c);
    }
  }
}

using namespace std::string_view_literals;

TEST(NoNul, SaysWhereTheFirstOneIs) {
  EXPECT_NO_THROW(require_no_nul("a text", "text"));
  EXPECT_NO_THROW(require_no_nul("", "text"));
  EXPECT_THROWS(require_no_nul("a line\n\u4f60\u597d the next\0 and \0 more"sv, "text"), kEncoding,
                "text:2:12: expected text, got a NUL byte");
}

using namespace std::string_view_literals;
TEST(EncodingHint, KnowsGb18030) {
  // "床前明月光，疑是地上霜。" in GB18030.
  constexpr std::string_view verse =
      "\xB4\xB2\xC7\xB0\xC3\xF7\xD4\xC2\xB9\xE2\xA3\xAC\xD2\xC9\xCA\xC7\xB5\xD8\xC9\xCF\xCB\xAA\xA1"
      "\xA3\n";
  EXPECT_THAT(encoding_hint(verse), HasSubstr("iconv -f GB18030 -t UTF-8"));
  std::string text;
  for (int i = 0; i < 100; ++i) text += verse;
  EXPECT_THAT(encoding_hint(text), HasSubstr("iconv -f GB18030 -t UTF-8"));
}

TEST(EncodingHint, KnowsUtf16And32) {
  EXPECT_THAT(encoding_hint("\xFF\xFEh\0i\0"sv), HasSubstr("iconv -f UTF-16 "));
  EXPECT_THAT(encoding_hint("\xFE\xFF\0h\0i"sv), HasSubstr("iconv -f UTF-16 "));
  EXPECT_THAT(encoding_hint("\xFF\xFE\0\0h\0\0\0"sv), HasSubstr("iconv -f UTF-32 "));
  EXPECT_THAT(encoding_hint("h\0e\0l\0l\0o\0\xE9\0"sv), HasSubstr("iconv -f UTF-16LE "));
  EXPECT_THAT(encoding_hint("\0h\0e\0l\0l\0o\0\xE9"sv), HasSubstr("iconv -f UTF-16BE "));
}

TEST(EncodingHint, KnowsOtherPackers) {
  EXPECT_THAT(encoding_hint("\xFD"
                            "7zXZ\0\0\x04"sv),
              HasSubstr("packed with xz: unpack it"));
  EXPECT_THAT(encoding_hint("BZh91AY&SY\xE9"sv), HasSubstr("packed with bzip2"));
  EXPECT_THAT(encoding_hint("PK\x03\x04\x14\0"sv), HasSubstr("packed with zip"));
  EXPECT_THAT(encoding_hint("\x04\"M\x18\x64"sv), HasSubstr("packed with lz4"));
}

TEST(EncodingHint, KnowsLatinBinaryAndDamagedText) {
  EXPECT_THAT(encoding_hint("un caf\xE9 tr\xE8s serr\xE9"), HasSubstr("WINDOWS-1252"));
  EXPECT_THAT(encoding_hint("\x7F\x45LF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3E\xFF"sv),
              HasSubstr("binary"));
  EXPECT_THAT(encoding_hint("\x89PNG\r\n\x1A\n\x01\x02\x03\x04\x05\x06\xD9\xC8"),
              HasSubstr("binary"));
  EXPECT_THAT(encoding_hint("你好，世界。\xE4你好，世界。"), HasSubstr("damaged bytes"));
}

TEST(EncodingHint, OfOneNulIsToRemoveIt) {
  EXPECT_THAT(encoding_hint("x\0y\n"sv), HasSubstr("tr -d"));
  EXPECT_THAT(encoding_hint("good\tx\0y\n"sv), HasSubstr("tr -d"));
}

TEST(LooksBinary, IsATenthOfNuls) {
  EXPECT_FALSE(looks_binary(""));
  EXPECT_FALSE(looks_binary("one NUL \0 in a text"sv));
  EXPECT_TRUE(looks_binary("h\0e\0l\0l\0o\0"sv));
}

}  // namespace
}  // namespace fovea
