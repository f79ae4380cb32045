// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50;
constexpr std::uint32_t kEntrySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50;
constexpr std::size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22;

// Bits 1 and 2 say how hard the deflater tried, 3 that sizes follow the data, 11 that names are
// UTF-8.
constexpr std::uint32_t kHarmlessFlags = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 11;
constexpr std::uint32_t kUtf8Flag = 1 << 11;
// The value of a field whose true value stands in a ZIP64 record.
constexpr std::uint32_t kElsewhere16 = 0xffff, kElsewhere32 = 0xffffffff;
// Two bits of a deflated stream make at most 258 bytes.
constexpr std::uint64_t kMostExpansion = 1032;

[[noreturn]] void damaged(std::string_view where, const std::string& what) {
  throw Error(ErrorCode::kInputFormat, fmt::format("{}: {}", where, what),
              "the file is damaged or is no .npz file; restore it from a copy");
}

[[noreturn]] void too_large(std::string_view where) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: has ZIP64 records, as archives of 4 GiB and more have", where),
              "save the tensors as .safetensors");
}

std::uint32_t u16(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]) |
         static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + 1])) << 8;
}

std::uint32_t u32(std::string_view bytes, std::size_t at) {
  return u16(bytes, at) | u16(bytes, at + 2) << 16;
}

struct Directory {
  std::uint64_t begin, size;
  std::uint32_t entries;
};

Directory find_directory(const ByteSource& file, std::string_view where) {
  std::string room;
  const std::uint64_t before = file.size() - std::min<std::uint64_t>(file.size(), kEndBytes);
  const std::string_view end =
      file.view(before, static_cast<std::size_t>(file.size() - before), room);
  if (end.size() < kEndBytes || u32(end, 0) != kEndSignature) {
    damaged(where, "does not end with the directory of an archive");
  }
  const std::uint32_t entries = u16(end, 10), size = u32(end, 12), begin = u32(end, 16);
  if (entries == kElsewhere16 || size == kElsewhere32 || begin == kElsewhere32) too_large(where);
  if (u16(end, 4) != 0 || u16(end, 6) != 0 || u16(end, 8) != entries) {
    damaged(where, "is a part of an archive of several disks");
  }
  if (u16(end, 20) != 0) damaged(where, "has a comment behind its end");
  if (std::uint64_t{begin} + size != before) {
    damaged(where, fmt::format("the directory claims bytes {} to {} of a file of {}", begin,
                               std::uint64_t{begin} + size, file.size()));
  }
  if (size > kMaxDirectoryBytes) {
    damaged(where, fmt::format("has a directory of {} bytes; at most {} are read", size,
                               kMaxDirectoryBytes));
  }
  return {begin, size, entries};
}

void check_entry(const ZipEntry& entry, std::uint32_t flags, std::string_view where) {
  const std::string name = printable(entry.name);
  if ((flags & ~kHarmlessFlags) != 0) {
    damaged(where, fmt::format("member {} is encrypted or patched (flags {:#06x})", name, flags));
  }
  if (entry.packed == kElsewhere32 || entry.size == kElsewhere32 || entry.header == kElsewhere32) {
    too_large(where);
  }
  if (entry.method != ZipMethod::kStored && entry.method != ZipMethod::kDeflated) {
    damaged(where, fmt::format("member {} is packed by method {}; only 0 (stored) and 8 (deflated) "
                               "can be read",
                               name, static_cast<std::uint32_t>(entry.method)));
  }
  const bool possible = entry.method == ZipMethod::kStored
                            ? entry.size == entry.packed
                            : entry.size / kMostExpansion <= entry.packed;
  if (!possible) {
    damaged(where, fmt::format("member {} claims {} bytes of {} packed ones", name, entry.size,
                               entry.packed));
  }
}

// The bytes of a member begin where its local header ends.
void find_bytes(const ByteSource& file, ZipEntry& entry, std::uint64_t directory,
                std::string_view where) {
  const auto fail_entry = [&](std::string_view what) {
    damaged(where, fmt::format("member {} {}", printable(entry.name), what));
  };
  if (directory < kLocalBytes || entry.header > directory - kLocalBytes) {
    fail_entry("begins outside of the file");
  }
  std::string room;
  const auto bytes =
      std::min<std::uint64_t>(kLocalBytes + entry.name.size(), directory - entry.header);
  const std::string_view local = file.view(entry.header, static_cast<std::size_t>(bytes), room);
  if (u32(local, 0) != kLocalSignature) fail_entry("has no header where it should begin");
  const std::uint64_t name = u16(local, 26), extra = u16(local, 28);
  entry.begin = entry.header + kLocalBytes + name + extra;
  if (entry.begin + entry.packed > directory) fail_entry("ends outside of the file");
  if (name != entry.name.size() || local.substr(kLocalBytes) != entry.name ||
      u16(local, 8) != static_cast<std::uint32_t>(entry.method)) {
    fail_entry("has another name or method in its own header");
  }
}

void check_apart(const std::vector<ZipEntry>& entries, std::string_view where) {
  std::vector<const ZipEntry*> order;
  for (const ZipEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const ZipEntry* a, const ZipEntry* b) { return a->header < b->header; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->header >= order[i - 1]->begin + order[i - 1]->packed) continue;
    damaged(where, fmt::format("members {} and {} overlap", printable(order[i - 1]->name),
                               printable(order[i]->name)));
  }
}

void append(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xff);
}

// Appends the fields that the local header and the directory share: from the version that is needed
// to read the member, up to the length of the extra field.
void append_common(std::string& to, const ZipMember& member) {
  constexpr std::uint64_t kVersion = 20, kMidnight = 0, kFirstDay = 1 << 5 | 1;  // 1980-01-01
  append(to, kVersion, 2);
  append(to, kUtf8Flag, 2);
  append(to, static_cast<std::uint32_t>(ZipMethod::kStored), 2);
  append(to, kMidnight, 2);
  append(to, kFirstDay, 2);
  append(to, crc32(member.bytes), 4);
  append(to, member.bytes.size(), 4);
  append(to, member.bytes.size(), 4);
  append(to, member.name.size(), 2);
  append(to, 0, 2);
}

void append_entry(std::string& to, const ZipMember& member, std::uint64_t header) {
  append(to, kEntrySignature, 4);
  append(to, 20, 2);  // written by
  append_common(to, member);
  append(to, 0, 2);  // comment
  append(to, 0, 2);  // disk
  append(to, 0, 2);  // attributes inside
  append(to, 0, 4);  // and outside
  append(to, header, 4);
  to += member.name;
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const ByteSource& file, std::string_view where) {
  const Directory directory = find_directory(file, where);
  std::string room;
  std::string_view rest =
      file.view(directory.begin, static_cast<std::size_t>(directory.size), room);
  std::vector<ZipEntry> entries;
  for (std::uint32_t n = 0; n < directory.entries; ++n) {
    if (rest.size() < kEntryBytes || u32(rest, 0) != kEntrySignature) {
      damaged(where,
              fmt::format("the directory ends after {} of {} members", n, directory.entries));
    }
    const std::size_t name = u16(rest, 28);
    const std::size_t length = kEntryBytes + name + u16(rest, 30) + u16(rest, 32);
    if (rest.size() < length) damaged(where, "the directory ends within a name");
    ZipEntry entry{.name = std::string(rest.substr(kEntryBytes, name)),
                   .method = static_cast<ZipMethod>(u16(rest, 10)),
                   .crc = u32(rest, 16),
                   .header = u32(rest, 42),
                   .packed = u32(rest, 20),
                   .size = u32(rest, 24)};
    check_entry(entry, u16(rest, 8), where);
    find_bytes(file, entry, directory.begin, where);
    entries.push_back(std::move(entry));
    rest.remove_prefix(length);
  }
  if (!rest.empty()) damaged(where, "the directory holds more than its members");
  check_apart(entries, where);
  return entries;
}

void check_zip_size(std::size_t members, std::uint64_t bytes) {
  if (bytes < kElsewhere32 && members < kElsewhere16) return;
  throw Error(ErrorCode::kShape,
              fmt::format("zip: {} members of {} bytes in all do not fit into an archive of less "
                          "than 4 GiB",
                          members, bytes),
              "choose .safetensors");
}

std::string zip_bytes(std::span<const ZipMember> members) {
  std::uint64_t total = kEndBytes;
  for (const ZipMember& member : members) {
    check(member.name.size() < kElsewhere16, "zip: a name of {} bytes", member.name.size());
    total += kLocalBytes + kEntryBytes + 2 * member.name.size() + member.bytes.size();
  }
  check_zip_size(members.size(), total);
  std::string file, directory;
  file.reserve(static_cast<std::size_t>(total));
  for (const ZipMember& member : members) {
    append_entry(directory, member, file.size());
    append(file, kLocalSignature, 4);
    append_common(file, member);
    file += member.name;
    file += member.bytes;
  }
  const std::size_t begin = file.size();
  file += directory;
  append(file, kEndSignature, 4);
  append(file, 0, 4);  // disks
  append(file, members.size(), 2);
  append(file, members.size(), 2);
  append(file, directory.size(), 4);
  append(file, begin, 4);
  append(file, 0, 2);  // comment
  return file;
}

namespace {

constexpr std::uint64_t kPiece = 65536;

[[noreturn]] void damaged(std::string_view where, const ZipEntry& entry, const std::string& what) {
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: member {} {}", where, printable(entry.name), what),
              "the file is damaged; restore it from a copy");
}

}  // namespace

struct ZipMemberReader::Stream {
  Stream() {
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Stream() { inflateEnd(&z); }

  z_stream z{};
  std::string room;  // for the packed bytes that z reads
  bool ended = false;
};

ZipMemberReader::ZipMemberReader(const ByteSource& file, const ZipEntry& entry,
                                 std::string_view where)
    : file_(file), entry_(entry), where_(where) {
  if (entry.method == ZipMethod::kDeflated) stream_ = std::make_unique<Stream>();
}

ZipMemberReader::~ZipMemberReader() = default;

void ZipMemberReader::fail_size() const {
  damaged(where_, entry_,
          fmt::format("does not deflate to the {} bytes that it claims", entry_.size));
}

// Fills `to`. If the stream ends before, z.avail_out stays above 0.
void ZipMemberReader::read_piece(std::span<char> to) {
  z_stream& z = stream_->z;
  z.next_out = reinterpret_cast<Bytef*>(to.data());
  z.avail_out = static_cast<uInt>(to.size());
  while (z.avail_out > 0 && !stream_->ended) {
    const std::uint64_t piece = z.avail_in > 0 ? 0 : std::min(entry_.packed - taken_, kPiece);
    if (piece > 0) {
      const std::string_view packed =
          file_.view(entry_.begin + taken_, static_cast<std::size_t>(piece), stream_->room);
      taken_ += piece;
      // zlib reads through a pointer that it does not call const.
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      z.avail_in = static_cast<uInt>(piece);
    }
    const int status = inflate(&z, Z_NO_FLUSH);  // Z_BUF_ERROR: it needs more input
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END) fail_size();
    stream_->ended = status == Z_STREAM_END;
  }
}

void ZipMemberReader::read(std::span<char> to) {
  while (!to.empty()) {
    const std::span<char> piece = to.first(std::min<std::size_t>(to.size(), kPiece));
    if (stream_ == nullptr) {
      file_.read(entry_.begin + taken_, piece);
      taken_ += piece.size();
    } else {
      read_piece(piece);
      if (stream_->z.avail_out > 0) fail_size();
    }
    crc_ = crc32({piece.data(), piece.size()}, crc_);
    to = to.subspan(piece.size());
  }
}

void ZipMemberReader::finish() {
  if (stream_ != nullptr) {
    char more = 0;
    read_piece({&more, 1});
    if (stream_->z.avail_out == 0 || stream_->z.avail_in > 0) fail_size();
  }
  if (taken_ != entry_.packed) fail_size();
  if (crc_ != entry_.crc) damaged(where_, entry_, "has a wrong checksum");
}

}  // namespace fovea
