// SPDX-License-Identifier: Apache-2.0
// Unpacks the bytes of one member of an archive, piece by piece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fovea/base/byte_source.h"
#include "fovea/tensor/zip.h"

namespace fovea {

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
