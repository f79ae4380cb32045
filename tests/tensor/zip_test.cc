// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/zip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/tensor/checksum.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<ZipMember> members_of(const std::string& file) {
  const MemorySource source(file);
  std::vector<ZipMember> members;
  for (const ZipEntry& entry : read_zip_directory(source, "x.npz")) {
    ZipMemberReader reader(source, entry, "x.npz");
    members.push_back({entry.name, std::string(entry.size, '\0')});
    reader.read(members.back().bytes);
    reader.finish();
  }
  return members;
}

std::string two_members() {
  return zip_bytes(std::vector<ZipMember>{{"a", "first"}, {"\u4e2d", std::string(300, '\0')}});
}

// Python's zipfile: "deflated" holds "ab" 500 times, "empty" nothing; both are deflated.
constexpr std::string_view kDeflated =
    "504b03041400000008000000210048c5c7570c000000e8030000080000006465666c617465644b4c4a1c85a3"
    "70140e730800504b03041400000008000000210000000000020000000000000005000000656d707479030050"
    "4b010214031400000008000000210048c5c7570c000000e80300000800000000000000000000008001000000"
    "006465666c61746564504b010214031400000008000000210000000000020000000000000005000000000000"
    "0000000000800132000000656d707479504b0506000000000200020069000000570000000000";

std::string deflated_file() {
  std::string bytes;
  for (std::size_t i = 0; i < kDeflated.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(kDeflated.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

// Where the directory begins, as the end of the file says.
std::size_t directory_of(const std::string& file) {
  std::size_t begin = 0;
  for (std::size_t i = 4; i-- > 0;) {
    begin = begin << 8 | static_cast<unsigned char>(file[file.size() - 6 + i]);
  }
  return begin;
}

// The file with a byte of the directory's first entry replaced.
std::string with_entry_byte(std::string file, std::size_t at, int value) {
  file[directory_of(file) + at] = static_cast<char>(value);
  return file;
}

TEST(Zip, WhatIsWrittenIsReadBack) {
  const auto members = members_of(two_members());
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].name, "a");
  EXPECT_EQ(members[0].bytes, "first");
  EXPECT_EQ(members[1].name, "\u4e2d");
  EXPECT_EQ(members[1].bytes, std::string(300, '\0'));
  EXPECT_TRUE(members_of(zip_bytes({})).empty());
}

TEST(Zip, HoldsLessThanFourGigabytes) {
  constexpr std::uint64_t kLimit = 0xffffffff;
  EXPECT_NO_THROW(check_zip_size(65534, kLimit - 1));
  EXPECT_THROWS(check_zip_size(1, kLimit), kShape, "less than 4 GiB");
  EXPECT_THROWS(check_zip_size(65535, 1), kShape, "65535 members");
}

TEST(Zip, DeflatedMembersAreInflated) {
  const auto members = members_of(deflated_file());
  ASSERT_EQ(members.size(), 2u);
  ASSERT_EQ(members[0].bytes.size(), 1000u);
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(members[0].bytes[i], "ab"[i % 2]);
  EXPECT_EQ(members[1].name, "empty");
  EXPECT_EQ(members[1].bytes, "");
}

TEST(Zip, EveryTruncationAndEveryTailIsFound) {
  for (const std::string& file : {two_members(), deflated_file()}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_THROWS(members_of(file.substr(0, size)), kInputFormat, "x.npz: ");
    }
    EXPECT_THROWS(members_of(file + '\0'), kInputFormat, "does not end with the directory");
    EXPECT_THROWS(members_of("x" + file), kInputFormat, "the directory claims bytes");
  }
}

// A flipped bit either has no meaning (a date) or is found: the bytes of a member never differ.
TEST(Zip, AFlippedBitNeverChangesAMember) {
  for (const std::string& file : {two_members(), deflated_file()}) {
    const auto good = members_of(file);
    index refused = 0;
    for (std::size_t bit = 0; bit < 8 * file.size(); ++bit) {
      std::string flipped = file;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      try {
        const auto members = members_of(flipped);
        ASSERT_EQ(members.size(), good.size()) << bit;
        for (std::size_t i = 0; i < good.size(); ++i) EXPECT_EQ(members[i].bytes, good[i].bytes);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInputFormat) << error.what();
        ++refused;
      }
    }
    EXPECT_GT(refused, static_cast<index>(4 * file.size()));
  }
}

TEST(Zip, EveryLieOfTheDirectoryIsNamed) {
  const std::string file = two_members();
  const auto refused = [&](std::size_t at, int value, const char* words) {
    EXPECT_THROWS(members_of(with_entry_byte(file, at, value)), kInputFormat, words);
  };
  refused(0, 'X', "ends after 0 of 2 members");
  refused(8, 1, "is encrypted or patched");
  refused(10, 12, "is packed by method 12");
  refused(16, 0, "has a wrong checksum");
  refused(20, 6, "claims 5 bytes of 6 packed ones");
  refused(29, 1, "the directory ends within a name");
  refused(42, 1, "has no header where it should begin");
  refused(44, 1, "begins outside of the file");
  refused(46, 'b', "has another name or method in its own header");
  EXPECT_THROWS(members_of(with_entry_byte(deflated_file(), 26, 255)), kInputFormat, "packed ones");
}

TEST(Zip, MembersMustNotOverlap) {
  const std::string one = zip_bytes(std::vector<ZipMember>{{"a", "first"}});
  const std::size_t begin = directory_of(one);
  const std::string entry = one.substr(begin, one.size() - 22 - begin);
  std::string twice = one.substr(0, begin) + entry + entry + one.substr(one.size() - 22);
  const std::size_t end = twice.size() - 22;
  twice[end + 8] = twice[end + 10] = 2;
  twice[end + 12] = static_cast<char>(2 * entry.size());
  EXPECT_THROWS(members_of(twice), kInputFormat, "members 'a' and 'a' overlap");
}

TEST(Zip, LargeArchivesOfOthersAreNamed) {
  std::string file = two_members();
  for (std::size_t i = 0; i < 4; ++i) file[file.size() - 6 + i] = '\xff';
  EXPECT_THROWS(members_of(file), kInputFormat, "ZIP64");
  std::string entry = two_members();
  for (std::size_t i = 20; i < 28; ++i) entry = with_entry_byte(entry, i, 255);
  EXPECT_THROWS(members_of(entry), kInputFormat, "ZIP64");
}

TEST(Zip, ADirectoryThatDoesNotFitIsRefusedBeforeItIsRead) {
  constexpr std::size_t kName = 65000;
  std::vector<ZipMember> members;
  for (std::size_t n = 0; n <= kMaxDirectoryBytes / kName; ++n) {
    members.push_back({std::string(kName, static_cast<char>('a' + n % 26)), ""});
  }
  EXPECT_THROWS(members_of(zip_bytes(members)), kInputFormat, "at most 8388608 are read");
}

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
