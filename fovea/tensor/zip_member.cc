// SPDX-License-Identifier: Apache-2.0
#include "fovea/tensor/zip_member.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/printable.h"
#include "fovea/tensor/checksum.h"

namespace fovea {

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
