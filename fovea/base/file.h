// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files. A reader never sees a file that is half written.
//
// Lists and removes folders: this replaces the iterators of std::filesystem, which end the process
// when memory runs out (libstdc++ 12): they allocate in a function that may not throw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fovea/base/error.h"

namespace fovea {

/// The whole file. Throws kMissingInput, kNotARegularFile (a directory, FIFO, device), kRead,
/// kOutOfMemory.
std::string read_file(const std::filesystem::path& path);

/// Writes `bytes`, and the pieces behind them, to a temporary file beside `path`, flushes it to the
/// disk, renames it over `path`, and flushes the folder: after a crash `path` is the old file or
/// the new one, whole. On failure the old file is untouched, the temporary one removed. Never
/// replaces what is not a regular file. Throws kWrite, kDiskFull.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes,
                           std::span<const std::string_view> more = {});

/// The same for what is written piece by piece.
class AtomicFile {
 public:
  /// Opens the temporary file.
  explicit AtomicFile(const std::filesystem::path& path);
  /// Removes it, unless it was published.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  /// Makes it the file. Nothing can be written then.
  void publish();
  const std::filesystem::path& temporary() const { return temporary_; }

 private:
  const std::filesystem::path path_;
  std::filesystem::path target_, temporary_;
  std::optional<unsigned> mode_;  // of the file that is replaced
  struct Opened;
  std::unique_ptr<Opened> opened_;  // null: published
};

/// Writes and flushes a file inside a folder that is not published yet: `bytes`, and the pieces
/// behind them. Throws as above.
void write_file_durably(const std::filesystem::path& path, std::string_view bytes,
                        std::span<const std::string_view> more = {});

/// Renames a finished folder (its files flushed already) to `target` beside it, which must not
/// exist, and flushes both: the folder appears whole or not at all. Throws kOutputExists, kWrite.
void publish_folder(const std::filesystem::path& folder, const std::filesystem::path& target);

/// Exchanges the names of two folders, which lie beside each other and are flushed already, and
/// flushes the change. This is one step, or three renames where the file system cannot exchange
/// names. Throws kWrite.
void exchange_folders(const std::filesystem::path& a, const std::filesystem::path& b);

/// The code of a write that failed with this errno: kDiskFull if there is no room, otherwise
/// kWrite.
ErrorCode code_of_failed_write(int error);

/// Creates one folder, durably; its parent must exist. Returns whether it was created: false if it
/// existed already. On failure nothing is left. Throws kWrite, kDiskFull.
bool create_folder(const std::filesystem::path& path);

/// Creates the folder and its parents, durably, and returns those that were not there before, the
/// outermost first. On failure it leaves none of them. Throws kWrite, kDiskFull.
std::vector<std::filesystem::path> create_folders(const std::filesystem::path& path);

/// Removes those of the folders that are empty, the last one first. Use it to undo create_folders.
void remove_empty_folders(std::span<const std::filesystem::path> folders);

/// Removes a file, if it is there. Throws kWrite.
void remove_file(const std::filesystem::path& path);

/// Whether `path` names the file or folder that is open as descriptor `file`. False if that was
/// moved or removed.
bool leads_to(const std::filesystem::path& path, int file);

/// A folder that is held open, so that a different folder which later gets its path is noticed.
class HeldFolder {
 public:
  /// Throws kWrite if there is no such folder.
  explicit HeldFolder(std::filesystem::path path);
  ~HeldFolder();
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;

  /// Whether its path still leads to it. False if it was moved or removed.
  bool is_in_place() const;

 private:
  const std::filesystem::path path_;
  const int fd_;
};

/// Bytes free to this user on the disk that holds `path` (or its nearest existing parent); the
/// largest number if the system does not say.
std::uintmax_t free_disk_bytes(const std::filesystem::path& path);

/// The names in a folder, in no particular order. On an error, those found before it. Throws
/// std::bad_alloc if memory runs out.
std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error);

/// The names in a folder, in no particular order; throws Error(kRead) on an error.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Removes a file, or a folder with all that is in it; links are not followed. A path that does not
/// exist is no error. After an error it goes on and removes the rest as far as it can.
void remove_tree(const std::filesystem::path& path, std::error_code& error);

}  // namespace fovea
