// SPDX-License-Identifier: Apache-2.0
// Text in gzip (RFC 1952) or Zstandard (RFC 8878) files, unpacked while it is read. Which it is, is
// seen from the first bytes, never from the name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "fovea/base/bytes.h"

namespace fovea {

enum class Compression { kNone, kGzip, kZstd };

/// The compression of a file that begins with these bytes.
Compression compression_of(std::string_view begin);

/// Bytes that were read already to see what a stream is, then the rest of it.
class StartedStream final : public ByteStream {
 public:
  StartedStream(std::string start, std::unique_ptr<ByteStream> rest);
  std::size_t read(std::span<char> to) override;
  std::uint64_t size_hint() const override { return hint_; }

 private:
  std::string start_;
  std::size_t given_ = 0;
  std::unique_ptr<ByteStream> rest_;
  std::uint64_t hint_;  // of the whole
};

/// The bytes of `packed`, unpacked if they are packed; several members or frames are joined. It
/// takes at most 128 MiB (the largest window) and a few pieces, whatever the text unpacks to. A
/// file that is damaged, cut off, or followed by anything but zeros (gzip) throws kInputFormat when
/// that place is reached; the message names `name` and the byte of the packed file.
std::unique_ptr<ByteStream> unpacked(std::unique_ptr<ByteStream> packed, const std::string& name);

/// Opens a file, a pipe or, as "-", standard input, and unpacks it. Throws as FileStream and
/// unpacked do.
std::unique_ptr<ByteStream> open_text(const std::string& file);

/// The whole text of a file, which is never in memory twice. Throws as open_text and read_whole do.
std::string read_text_file(const std::string& file);

/// A name without ".gz" or ".zst" at its end.
std::string_view without_compression_suffix(std::string_view name);

}  // namespace fovea
