// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "fovea/text/utf8.h"

namespace fovea {
namespace {

using namespace std::string_view_literals;
using testing::HasSubstr;

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
