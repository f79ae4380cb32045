// SPDX-License-Identifier: Apache-2.0
// The part of the ZIP format (APPNOTE 6.3.10) that .npz files use: members stored or deflated, one
// disk, below 4 GiB.
// The bytes of a member are unpacked piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"

namespace fovea {

enum class ZipMethod : std::uint32_t { kStored = 0, kDeflated = 8 };

/// An entry of the archive's directory about one member.
struct ZipEntry {
  std::string name;
  ZipMethod method = ZipMethod::kStored;
  std::uint32_t crc = 0;
  std::uint64_t header = 0;            ///< where its local header begins
  std::uint64_t begin = 0;             ///< where its bytes begin
  std::uint64_t packed = 0, size = 0;  ///< bytes in the file, and of the member
};

/// The largest directory that is read; it is held in memory.
inline constexpr std::uint64_t kMaxDirectoryBytes = std::uint64_t{8} << 20;

/// The members, in the order of the directory. Their bytes are not read: ZipMemberReader does that.
/// Nothing is trusted: the directory must end the file, members must not overlap, and the packed
/// bytes must be able to unpack to the size that is claimed.
/// Throws kInputFormat that begins with `where` and names the member, and what file.read throws.
std::vector<ZipEntry> read_zip_directory(const ByteSource& file, std::string_view where);

struct ZipMember {
  std::string name;
  std::string bytes;
};

/// Throws kShape from 4 GiB or 65535 members on.
void check_zip_size(std::size_t members, std::uint64_t bytes);

/// An archive of stored members, in this order, all with the same date: the same members give the
/// same bytes. Throws as check_zip_size does.
std::string zip_bytes(std::span<const ZipMember> members);

/// Never takes more memory than a few pieces of 64 KiB, whatever the member unpacks to.
class ZipMemberReader {
 public:
  /// All three arguments must outlive the reader. `where` begins each message.
  ZipMemberReader(const ByteSource& file, const ZipEntry& entry, std::string_view where);
  ~ZipMemberReader();

  /// The next bytes of the member; all calls together may ask for at most entry.size. Throws
  /// kInputFormat if the member unpacks to fewer, and what file.read throws.
  void read(std::span<char> to);
  /// Call it after entry.size bytes. Throws kInputFormat unless the member ends here and has the
  /// checksum of the directory.
  void finish();

 private:
  struct Stream;

  void read_piece(std::span<char> to);
  [[noreturn]] void fail_size() const;

  const ByteSource& file_;
  const ZipEntry& entry_;
  std::string_view where_;
  std::uint64_t taken_ = 0;         // of its packed bytes
  std::uint32_t crc_ = 0;           // of what has been unpacked
  std::unique_ptr<Stream> stream_;  // of a deflated member
};

}  // namespace fovea
