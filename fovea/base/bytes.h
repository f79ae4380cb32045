// SPDX-License-Identifier: Apache-2.0
// Bytes of files, pipes and memory: read at any place (ByteSource), or one after another
// (ByteStream).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fovea/base/mapped_file.h"

namespace fovea {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  /// The bytes from `begin` on, which must all lie below size(). Throws kRead.
  virtual void read(std::uint64_t begin, std::span<char> to) const = 0;
  /// The bytes as a text. It is read into `room` unless the source holds it in memory already.
  virtual std::string_view view(std::uint64_t begin, std::size_t bytes, std::string& room) const;
  /// Bytes that outlive the source: a copy, or those of the file itself. Throws kRead.
  virtual SharedBytes share(std::uint64_t begin, std::size_t bytes) const;
};

/// A text in memory that the caller keeps.
class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t begin, std::span<char> to) const override;
  std::string_view view(std::uint64_t begin, std::size_t bytes, std::string&) const override;

 private:
  std::string_view bytes_;
};

/// A regular file.
class FileSource : public ByteSource {
 public:
  /// Throws kMissingInput, kNotARegularFile (a directory, FIFO, device), kRead.
  explicit FileSource(std::filesystem::path path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  /// The size when the file was opened; 0 for the files of /proc.
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t begin, std::span<char> to) const override;
  /// The first call maps the file. It is copied where the system refuses, and where `begin` is odd,
  /// since halves lie at even places.
  SharedBytes share(std::uint64_t begin, std::size_t bytes) const override;
  int descriptor() const { return fd_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
  mutable std::once_flag asked_;
  mutable std::shared_ptr<const MappedFile> mapped_;  // null: not asked for, or refused
};

/// Opens a file to read from it, and returns its descriptor; a FIFO without a writer is opened,
/// too. Sets `mode`. Throws kMissingInput, kRead.
int open_to_read(const std::filesystem::path& path, mode_t& mode);

/// "a directory", "a FIFO" or "a device or socket".
std::string_view kind_of_file(mode_t mode);

// Bytes that come one after another, from a file, a pipe or standard input. ByteSource is for files
// in which a reader goes back and forth.

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Puts the next bytes at the front of `to`, which must not be empty, and returns their number: 0
  /// at the end, and only there. A pipe may give fewer than there is room for. Throws kRead.
  virtual std::size_t read(std::span<char> to) = 0;
  /// How many bytes will probably come; 0 if nothing is known.
  virtual std::uint64_t size_hint() const { return 0; }
};

/// A text in memory that the caller keeps.
class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}
  std::size_t read(std::span<char> to) override;
  std::uint64_t size_hint() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;  // what has not been read
};

/// A regular file, a pipe, or, as "-", standard input. Opening one does not wait: a FIFO that
/// nobody has opened to write to is an error.
class FileStream final : public ByteStream {
 public:
  /// Throws kMissingInput, kNotARegularFile (a directory or device), kRead.
  explicit FileStream(const std::string& file);
  ~FileStream() override;
  FileStream(const FileStream&) = delete;
  FileStream& operator=(const FileStream&) = delete;

  /// From now on read() calls this before it waits for bytes that have not come yet: a program can
  /// then answer what it has read so far. read() throws what `call` throws.
  void before_waiting(std::function<void()> call) { before_waiting_ = std::move(call); }

  /// Also throws kNotARegularFile for a FIFO that nobody writes to.
  std::size_t read(std::span<char> to) override;
  std::uint64_t size_hint() const override { return size_; }

 private:
  std::string name_;
  int fd_ = 0;
  bool is_fifo_ = false;  // and nothing has come yet
  std::uint64_t size_ = 0;
  std::function<void()> before_waiting_;
};

/// The name of a file in messages: "standard input" for "-", otherwise its path.
std::string name_of_input(const std::string& file);

/// All that the stream still has. It is never in memory twice. `name` and `hint` are those of the
/// error where it would not fit. Throws kOutOfMemory, kInputFormat as soon as there are more than
/// `most` bytes, and what read() throws.
std::string read_whole(ByteStream& stream, std::string_view name, std::string_view hint,
                       std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace fovea
