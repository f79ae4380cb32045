// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/compressed.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <vector>

#include "fovea/base/file.h"
#include "tests/support/drip.h"
#include "tests/support/folder.h"
#include "tests/support/packed.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

// Neither all alike nor without pattern, and longer than several pieces.
std::string some_text(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i / 977 % 26);
  return text;
}

std::string unpack(const std::string& packed, std::size_t most_in = 1 << 30,
                   std::size_t most_out = 300'000) {
  const auto stream = unpacked(std::make_unique<Drip>(packed, most_in), "x");
  std::string all, piece(most_out, '\0');
  while (const std::size_t n = stream->read(piece)) all.append(piece, 0, n);
  EXPECT_EQ(stream->read(piece), 0u) << "the end stays the end";
  return all;
}

TEST(Compressed, IsSeenFromTheFirstBytes) {
  EXPECT_EQ(compression_of(gzip_of("x")), Compression::kGzip);
  EXPECT_EQ(compression_of(zstd_of("x")), Compression::kZstd);
  EXPECT_EQ(compression_of("\x50\x2a\x4d\x18"), Compression::kZstd);
  for (const std::string_view text : {"", "x", "\x1f", "\x1f\x8b", "(", "P*M", "P*M ", "text"}) {
    EXPECT_EQ(compression_of(text), Compression::kNone) << text;
  }
}

TEST(Compressed, TextsOfAllSizesComeBack) {
  for (const std::size_t size : {0u, 1u, 17u, 18u, 19u, 1000u, 65'536u, 1'000'000u}) {
    const std::string text = some_text(size);
    for (const std::string& packed :
         {text, gzip_of(text), zstd_of(text), zstd_of(text, false), gzip_of(text, 0)}) {
      EXPECT_EQ(unpack(packed), text) << size;
      EXPECT_EQ(unpack(packed, 1000, 777), text) << size;
      if (size > 2000) continue;
      EXPECT_EQ(unpack(packed, 1, 1), text) << size;
    }
  }
}

TEST(Compressed, MembersAndFramesAreJoined) {
  const std::string text = some_text(200'000), skippable = "\x53\x2a\x4d\x18\x03\0\0\0abc"s;
  const std::string gzip = gzip_of("one") + gzip_of("") + gzip_of(text) + gzip_of("end");
  EXPECT_EQ(unpack(gzip), "one" + text + "end");
  EXPECT_EQ(unpack(gzip, 1, 999), "one" + text + "end");
  EXPECT_EQ(unpack(gzip + std::string(1000, '\0')), "one" + text + "end") << "filled with zeros";
  const std::string zstd = skippable + zstd_of("one") + zstd_of("", false) + skippable +
                           zstd_of(text) + zstd_of("end", false) + skippable;
  EXPECT_EQ(unpack(zstd), "one" + text + "end");
  EXPECT_EQ(unpack(zstd, 1, 999), "one" + text + "end");
}

// Every place where a small file can be cut off is an error, or the end of a member.
TEST(Compressed, WhatIsCutOffIsAnError) {
  const std::string text = some_text(3000);
  for (const auto& [packed, whole] :
       {std::pair{gzip_of(text) + gzip_of(text), gzip_of(text).size()},
        std::pair{zstd_of(text) + zstd_of(text), zstd_of(text).size()}}) {
    for (std::size_t size = 4; size < packed.size(); ++size) {
      const std::string cut = packed.substr(0, size);
      if (size == whole) {
        EXPECT_EQ(unpack(cut), text);
        continue;
      }
      EXPECT_THROWS(unpack(cut), kInputFormat,
                    "x: byte " + std::to_string(size) + ": the " +
                        (packed[0] == '(' ? "zstd" : "gzip") + " data ends too early");
    }
  }
}

// A checksum finds what the unpacking does not. (Bits of the header of gzip mean nothing: a name, a
// time, a system.)
TEST(Compressed, EveryFlippedBitIsAnErrorOrChangesNothing) {
  const std::string text = some_text(700);
  for (const std::string& packed : {gzip_of(text), zstd_of(text), zstd_of(text, false)}) {
    int errors = 0, flipped = 0;
    for (std::size_t bit = 8 * 4; bit < 8 * packed.size(); ++bit, ++flipped) {
      std::string damaged = packed;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      const auto error = error_of([&] { EXPECT_EQ(unpack(damaged), text) << bit; });
      if (!error) continue;
      ++errors;
      EXPECT_EQ(error->code(), ErrorCode::kInputFormat);
      EXPECT_THAT(error->what(), HasSubstr("x: byte "));
      EXPECT_FALSE(error->hint().empty());
    }
    EXPECT_GT(errors, flipped * 9 / 10);
  }
}

TEST(Compressed, OtherBytesBehindTheEndAreAnError) {
  const std::string gzip = gzip_of("text"), zstd = zstd_of("text");
  EXPECT_THROWS(unpack(gzip + "more"), kInputFormat,
                "x: byte " + std::to_string(gzip.size()) + ": after the end of the gzip data");
  EXPECT_THROWS(unpack(gzip + "\0\0more"s), kInputFormat,
                "x: byte " + std::to_string(gzip.size() + 2) + ": after");
  EXPECT_THROWS(unpack(zstd + "more!"), kInputFormat,
                "x: byte " + std::to_string(zstd.size()) + ": after the end of a zstd frame");
}

TEST(Compressed, LargeWindowsAreAnError) {
  const auto error = error_of([] { unpack(zstd_of(some_text(100), false, 30)); });
  ASSERT_TRUE(error.has_value());
  EXPECT_THAT(error->what(), HasSubstr("expected a zstd window of at most 128 MiB"));
  EXPECT_THAT(error->hint(), HasSubstr("--long"));
  EXPECT_EQ(unpack(zstd_of(some_text(100), false, 27)), some_text(100));
}

TEST(Compressed, AFrameThatClaimsMoreThanThereIsMemoryIsRefused) {
  // A frame header: single segment, the size in eight bytes.
  const std::string bomb = "\x28\xb5\x2f\xfd\xe0"s + "\0\0\0\0\0\0\0\x10"s + "\x01\0\0"s;
  const auto stream = unpacked(std::make_unique<Drip>(bomb, 100), "bomb.zst");
  EXPECT_THROWS(read_whole(*stream, "bomb.zst", "less"), kOutOfMemory,
                "bomb.zst would take 1.00 EiB");
}

TEST(Compressed, FilesAreReadByTheirContentWhateverTheirName) {
  const TestFolder folder;
  const std::string text = some_text(100'000);
  for (const std::string& packed : {text, gzip_of(text), zstd_of(text)}) {
    write_file_atomically(folder / "x.txt", packed);
    EXPECT_EQ(read_text_file(folder / "x.txt"), text);
  }
  write_file_atomically(folder / "cut.gz", gzip_of(text).substr(0, 900));
  EXPECT_THROWS(read_text_file(folder / "cut.gz"), kInputFormat, "cut.gz: byte 900: the gzip data");
  EXPECT_THROWS(read_text_file(folder / "none"), kMissingInput, "none: cannot open");
}

TEST(Compressed, SuffixesAreCutOff) {
  EXPECT_EQ(without_compression_suffix("a.tsv.zst"), "a.tsv");
  EXPECT_EQ(without_compression_suffix("a.csv.gz"), "a.csv");
  EXPECT_EQ(without_compression_suffix("a.tsv"), "a.tsv");
  EXPECT_EQ(without_compression_suffix(""), "");
}

}  // namespace
}  // namespace fovea
