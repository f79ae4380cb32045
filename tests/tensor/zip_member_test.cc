// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "fovea/tensor/checksum.h"
#include "fovea/tensor/zip.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::string deflated(const std::string& bytes) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

// Neither all alike nor without pattern, and longer than several pieces.
std::string some_bytes(std::size_t size = 300'000) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * i / 977 % 31);
  return bytes;
}

/// A member that is the whole file, `before` it a byte that is not its own.
struct Member {
  Member(const std::string& bytes, ZipMethod method)
      : file("x" + (method == ZipMethod::kStored ? bytes : deflated(bytes)) + "y"),
        source(file),
        entry{.name = "q.npy",
              .method = method,
              .crc = crc32(bytes),
              .begin = 1,
              .packed = file.size() - 2,
              .size = bytes.size()} {}

  std::string read(std::size_t piece) const {
    ZipMemberReader reader(source, entry, "x.npz");
    std::string bytes(entry.size, '\0');
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.read(std::span<char>(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    }
    reader.finish();
    return bytes;
  }

  std::string file;
  MemorySource source;
  ZipEntry entry;
};

constexpr ZipMethod kMethods[] = {ZipMethod::kStored, ZipMethod::kDeflated};

TEST(ZipMember, IsReadInPiecesOfAnySize) {
  const std::string bytes = some_bytes();
  for (const ZipMethod method : kMethods) {
    const Member member(bytes, method);
    for (const std::size_t piece : {7ul, 65535ul, 65536ul, 65537ul, 300'000ul}) {
      EXPECT_EQ(member.read(piece) == bytes, true) << piece;
    }
  }
  EXPECT_EQ(Member("", ZipMethod::kDeflated).read(1), "");
}

TEST(ZipMember, FirstBytesCostNoMore) {
  const Member member(some_bytes(), ZipMethod::kDeflated);
  ZipMemberReader reader(member.source, member.entry, "x.npz");
  std::string first(100, '\0');
  reader.read(first);
  EXPECT_EQ(first, some_bytes(100));
}

TEST(ZipMember, ASizeThatIsALieIsFound) {
  const std::string lie = "member 'q.npy' does not deflate to the";
  Member shorter(some_bytes(), ZipMethod::kDeflated);
  ++shorter.entry.size;
  EXPECT_THROWS(shorter.read(1000), kInputFormat, lie);
  Member longer(some_bytes(), ZipMethod::kDeflated);
  --longer.entry.size;
  EXPECT_THROWS(longer.read(1000), kInputFormat, lie);
  Member bomb(std::string(50'000'000, '\0'), ZipMethod::kDeflated);
  bomb.entry.size = 100;
  EXPECT_THROWS(bomb.read(100), kInputFormat, lie);
  for (const std::size_t cut : {std::size_t{1}, shorter.entry.packed / 2, shorter.entry.packed}) {
    Member cut_short(some_bytes(), ZipMethod::kDeflated);
    cut_short.entry.packed -= cut;
    EXPECT_THROWS(cut_short.read(1000), kInputFormat, lie);
  }
  for (const ZipMethod method : kMethods) {
    Member tail(some_bytes(), method);
    ++tail.entry.packed;
    EXPECT_THROWS(tail.read(1000), kInputFormat, lie);
  }
}

TEST(ZipMember, AWrongChecksumIsFound) {
  for (const ZipMethod method : kMethods) {
    Member member(some_bytes(), method);
    ++member.entry.crc;
    EXPECT_THROWS(member.read(1000), kInputFormat, "x.npz: member 'q.npy' has a wrong checksum");
  }
}

TEST(ZipMember, WhatIsNoStreamIsRefused) {
  for (const char first : {'\x06', '\x07', '\xff'}) {  // block types 3, and a code without sense
    Member member(some_bytes(), ZipMethod::kDeflated);
    member.file[1] = first;
    const MemorySource source(member.file);
    ZipMemberReader reader(source, member.entry, "x.npz");
    std::string bytes(1000, '\0');
    EXPECT_THROWS(reader.read(bytes), kInputFormat, "does not deflate");
  }
}

}  // namespace
}  // namespace fovea
