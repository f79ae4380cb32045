// SPDX-License-Identifier: Apache-2.0
// Bytes that are read in pieces, so that a large file need not fit into memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  /// The bytes from `begin` on, which must all lie below size(). Throws kRead.
  virtual void read(std::uint64_t begin, std::span<char> to) const = 0;
  /// The bytes as a text. It is read into `room` unless the source holds it in memory already.
  virtual std::string_view view(std::uint64_t begin, std::size_t bytes, std::string& room) const;
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
  int descriptor() const { return fd_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

/// Opens a file to read from it, and returns its descriptor; a FIFO without a writer is opened,
/// too. Sets `mode`. Throws kMissingInput, kRead.
int open_to_read(const std::filesystem::path& path, mode_t& mode);

/// "a directory", "a FIFO" or "a device or socket".
std::string_view kind_of_file(mode_t mode);

}  // namespace fovea
