// SPDX-License-Identifier: Apache-2.0
// The bytes of a member of an archive, unpacked as they are asked for.
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
  /// All of them must outlive the reader. `where` begins each message.
  ZipMemberReader(const ByteSource& file, const ZipEntry& entry, std::string_view where);
  ~ZipMemberReader();

  /// The next bytes of the member; of all calls together at most entry.size. Throws kInputFormat if
  /// it does not unpack to so many, and what file.read throws.
  void read(std::span<char> to);
  /// After entry.size bytes: throws kInputFormat unless the member ends here, with the checksum
  /// that the directory says.
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
