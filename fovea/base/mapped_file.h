// SPDX-License-Identifier: Apache-2.0
// Bytes of a file that are read where they lie, in the pages that the system keeps of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fovea {

/// A file, mapped to be read. If somebody makes it shorter, what is gone is read as zeros instead
/// of ending the process: the first mapping of a process installs a handler of SIGBUS, which leaves
/// all other faults to the handler before it.
class MappedFile {
 public:
  /// Maps `size` bytes of an open file, which may be closed then; `path` names it in messages.
  /// Null if the system refuses.
  static std::shared_ptr<const MappedFile> map(int descriptor, std::uint64_t size,
                                               const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::uint8_t> bytes() const { return bytes_; }
  /// Throws kRead if the file was written since it was mapped, so that what was read of it may be
  /// worth nothing. A file that another one replaced (by a rename) stays as it was.
  void require_unchanged() const;

 private:
  struct State;
  MappedFile(std::span<const std::uint8_t> bytes, std::unique_ptr<State> state);

  std::span<const std::uint8_t> bytes_;
  std::unique_ptr<State> state_;
};

/// Bytes that are read and never written, and what keeps them: a vector, or a file.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::vector<std::uint8_t> bytes)  // NOLINT(google-explicit-constructor)
      : SharedBytes(std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes))) {}
  /// Part of a file.
  SharedBytes(std::shared_ptr<const MappedFile> file, std::size_t begin, std::size_t size)
      : bytes_(file->bytes().subspan(begin, size)), file_(std::move(file)) {}

  const std::uint8_t* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool is_mapped() const { return file_ != nullptr; }
  /// As MappedFile has it; bytes in memory do not change.
  void require_unchanged() const {
    if (file_) file_->require_unchanged();
  }

 private:
  explicit SharedBytes(std::shared_ptr<const std::vector<std::uint8_t>> owned)
      : bytes_(*owned), owned_(std::move(owned)) {}

  std::span<const std::uint8_t> bytes_;
  std::shared_ptr<const std::vector<std::uint8_t>> owned_;
  std::shared_ptr<const MappedFile> file_;
};

}  // namespace fovea
