// SPDX-License-Identifier: Apache-2.0
#include "fovea/text/compressed.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

constexpr std::size_t kPiece = std::size_t{64} << 10;
constexpr std::size_t kLongestStart = 18;  // of a Zstandard frame; its size stands in there
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

constexpr std::string_view kGzipMagic = "\x1f\x8b\x08";  // its third byte: deflate
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kZstdSkippable = "\x2a\x4d\x18";  // behind a byte from 0x50 to 0x5F

/// The packed bytes, a piece at a time.
class PackedBytes {
 public:
  PackedBytes(std::unique_ptr<ByteStream> stream, std::string start)
      : stream_(std::move(stream)), room_(std::move(start)), rest_(room_) {}
  PackedBytes(const PackedBytes&) = delete;
  PackedBytes& operator=(const PackedBytes&) = delete;

  /// The bytes that were read and not used; empty only at the end of the file.
  std::string_view rest() {
    if (!rest_.empty() || ended_) return rest_;
    room_.resize(kPiece);
    rest_ = {room_.data(), stream_->read(room_)};
    ended_ = rest_.empty();
    return rest_;
  }
  void use(std::size_t bytes) {
    rest_.remove_prefix(bytes);
    used_ += bytes;
  }
  bool has_rest() const { return !rest_.empty(); }
  std::uint64_t used() const { return used_; }

 private:
  std::unique_ptr<ByteStream> stream_;
  std::string room_;
  std::string_view rest_;  // of room_
  std::uint64_t used_ = 0;
  bool ended_ = false;
};

class UnpackedStream : public ByteStream {
 public:
  UnpackedStream(std::unique_ptr<ByteStream> packed, std::string start, std::string name)
      : packed_(std::move(packed), std::move(start)), name_(std::move(name)) {}

 protected:
  [[noreturn]] void fail_at(std::string_view what, std::string_view tool) const {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: byte {}: {}", name_, packed_.used(), what),
                fmt::format("the file is damaged or incomplete: fetch or pack it again ({} -t FILE "
                            "checks it)",
                            tool));
  }

  PackedBytes packed_;
  const std::string name_;
};

class GzipStream final : public UnpackedStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> packed, std::string start, std::string name)
      : UnpackedStream(std::move(packed), std::move(start), std::move(name)) {
    constexpr int kWithGzipHeader = 16;
    if (inflateInit2(&z_, MAX_WBITS + kWithGzipHeader) != Z_OK) throw std::bad_alloc();
  }
  ~GzipStream() override { inflateEnd(&z_); }

  std::size_t read(std::span<char> to) override {
    std::size_t done = 0;
    while (done < to.size()) {
      if (done > 0 && !packed_.has_rest()) break;  // a pipe may be slow to give more
      const std::string_view rest = packed_.rest();
      if (in_member_ ? rest.empty() : !starts_member(rest)) break;
      done += inflate_some(rest, to.subspan(done, std::min(to.size() - done, kMostAtOnce)));
    }
    if (done == 0 && in_member_) fail_at("the gzip data ends too early", "gzip");
    return done;
  }

 private:
  // Between members: zeros may fill the file up to the end of a block.
  bool starts_member(std::string_view rest) {
    while (!rest.empty() && rest.front() == '\0') {
      packed_.use(rest.find_first_not_of('\0') == std::string_view::npos
                      ? rest.size()
                      : rest.find_first_not_of('\0'));
      rest = packed_.rest();
    }
    if (rest.empty()) return false;
    if (rest.front() != kGzipMagic.front()) {
      fail_at("after the end of the gzip data, expected the end of the file, got other bytes",
              "gzip");
    }
    if (inflateReset(&z_) != Z_OK) throw std::bad_alloc();
    return in_member_ = true;
  }

  std::size_t inflate_some(std::string_view rest, std::span<char> to) {
    // zlib reads through a pointer that it does not call const.
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    z_.avail_in = static_cast<uInt>(rest.size());
    z_.next_out = reinterpret_cast<Bytef*>(to.data());
    z_.avail_out = static_cast<uInt>(to.size());
    const int status = inflate(&z_, Z_NO_FLUSH);
    packed_.use(rest.size() - z_.avail_in);
    if (status == Z_MEM_ERROR) throw std::bad_alloc();
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail_at(fmt::format("damaged gzip data: {}", z_.msg != nullptr ? z_.msg : "no valid data"),
              "gzip");
    }
    in_member_ = status != Z_STREAM_END;
    return to.size() - z_.avail_out;
  }

  z_stream z_{};
  bool in_member_ = true;
};

std::uint64_t content_size(std::string_view start) {
  const unsigned long long size = ZSTD_getFrameContentSize(start.data(), start.size());
  return size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ? 0 : size;
}

class ZstdStream final : public UnpackedStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> packed, std::string start, std::string name)
      : UnpackedStream(std::move(packed), start, std::move(name)),
        size_(content_size(start)),
        stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    first_wanted_ = wanted_ = ZSTD_initDStream(stream_);
  }
  ~ZstdStream() override { ZSTD_freeDStream(stream_); }

  std::uint64_t size_hint() const override { return size_; }

  std::size_t read(std::span<char> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    // If there was no room for all that it had, it may give more without being given any.
    if (was_full_ && in_frame_) unpack_some({}, out);
    while (out.pos < out.size) {
      if (out.pos > 0 && !packed_.has_rest()) break;  // a pipe may be slow to give more
      const std::string_view rest = packed_.rest();
      if (rest.empty() && in_frame_) fail_at("the zstd data ends too early", "zstd");
      if (rest.empty()) break;
      unpack_some(rest, out);
    }
    was_full_ = out.pos == out.size;
    return out.pos;
  }

 private:
  void unpack_some(std::string_view rest, ZSTD_outBuffer& out) {
    // No more than it wants: then an error is one of the block that begins at used().
    ZSTD_inBuffer in{rest.data(), std::min(rest.size(), wanted_), 0};
    const std::size_t status = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(status) != 0) fail_with(status);
    packed_.use(in.pos);
    in_frame_ = status != 0;
    wanted_ = in_frame_ ? status : first_wanted_;
  }

  [[noreturn]] void fail_with(std::size_t status) const {
    switch (ZSTD_getErrorCode(status)) {
      case ZSTD_error_memory_allocation:
        throw std::bad_alloc();
      case ZSTD_error_frameParameter_windowTooLarge:
        throw Error(ErrorCode::kInputFormat,
                    fmt::format("{}: byte {}: expected a zstd window of at most 128 MiB, got a "
                                "larger one",
                                name_, packed_.used()),
                    "pack the file again without --long, or unpack it first: zstd -d --long=31");
      case ZSTD_error_prefix_unknown:
        fail_at(
            "after the end of a zstd frame, expected another or the end of the file, got other "
            "bytes",
            "zstd");
      default:
        fail_at(fmt::format("damaged zstd data: {}", ZSTD_getErrorName(status)), "zstd");
    }
  }

  std::uint64_t size_;
  ZSTD_DStream* stream_;
  std::size_t first_wanted_, wanted_;  // bytes: of a frame, and next
  bool in_frame_ = true;
  bool was_full_ = false;
};

}  // namespace

Compression compression_of(std::string_view begin) {
  if (begin.starts_with(kGzipMagic)) return Compression::kGzip;
  const bool skippable = begin.size() >= 4 && (static_cast<unsigned char>(begin[0]) >> 4) == 5 &&
                         begin.substr(1).starts_with(kZstdSkippable);
  return begin.starts_with(kZstdMagic) || skippable ? Compression::kZstd : Compression::kNone;
}

StartedStream::StartedStream(std::string start, std::unique_ptr<ByteStream> rest)
    : start_(std::move(start)), rest_(std::move(rest)), hint_(rest_->size_hint()) {}

std::size_t StartedStream::read(std::span<char> to) {
  if (given_ == start_.size()) return rest_->read(to);
  const std::size_t bytes = start_.copy(to.data(), to.size(), given_);
  given_ += bytes;
  return bytes;
}

std::unique_ptr<ByteStream> unpacked(std::unique_ptr<ByteStream> packed, const std::string& name) {
  std::string start(kLongestStart, '\0');
  std::size_t have = 0;
  while (have < start.size()) {
    const std::size_t bytes = packed->read(std::span(start).subspan(have));
    if (bytes == 0) break;
    have += bytes;
    // A line that comes through a pipe is not kept back until there are more.
    if (compression_of({start.data(), have}) == Compression::kNone && have >= kZstdMagic.size()) {
      break;
    }
  }
  start.resize(have);
  switch (compression_of(start)) {
    case Compression::kGzip:
      return std::make_unique<GzipStream>(std::move(packed), std::move(start), name);
    case Compression::kZstd:
      return std::make_unique<ZstdStream>(std::move(packed), std::move(start), name);
    case Compression::kNone:
      break;
  }
  return std::make_unique<StartedStream>(std::move(start), std::move(packed));
}

std::unique_ptr<ByteStream> open_text(const std::string& file) {
  return unpacked(std::make_unique<FileStream>(file), name_of_input(file));
}

std::string read_text_file(const std::string& file) {
  return read_whole(*open_text(file), name_of_input(file),
                    "use less text, or a machine with more memory");
}

std::string_view without_compression_suffix(std::string_view name) {
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

}  // namespace fovea
