// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_writing(const fs::path& path, std::string_view doing, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  throw Error(full ? ErrorCode::kDiskFull : ErrorCode::kWrite,
              fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(error)),
              full ? "free some space, or write to another disk"
                   : "check the path and its permissions, or choose another output");
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void flush_folder(const fs::path& folder) {
  const fs::path path = folder.empty() ? "." : folder;
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) fail_writing(path, "flush the folder", errno);
}

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_writing(path, "write", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd, std::size_t expected, const fs::path& path) {
  std::string bytes(expected, '\0');
  std::size_t have = 0;
  for (;;) {
    if (have == bytes.size()) bytes.resize(bytes.size() + 65536);
    const ssize_t n = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kRead, "{}: cannot read: {}", path.string(), std::strerror(errno));
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace

std::string read_file(const fs::path& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    throw Error(missing ? ErrorCode::kMissingInput : ErrorCode::kRead,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)),
                missing ? "check the path" : "check the permissions of the file");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    fail(ErrorCode::kRead, "{}: cannot inspect: {}", path.string(), std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    const std::string_view kind = S_ISDIR(status.st_mode)    ? "a directory"
                                  : S_ISFIFO(status.st_mode) ? "a FIFO"
                                                             : "a device or socket";
    throw Error(ErrorCode::kNotARegularFile,
                fmt::format("{}: expected a regular file, got {}", path.string(), kind),
                "name a regular file; save a stream to a file first");
  }
  return read_all(fd.get(), static_cast<std::size_t>(status.st_size) + 1, path);
}

void write_file_durably(const fs::path& path, std::string_view bytes) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) fail_writing(path, "create", errno);
  try {
    write_all(fd.get(), bytes, path);
    if (::fsync(fd.get()) != 0) fail_writing(path, "flush", errno);
    if (::close(fd.release()) != 0) fail_writing(path, "close", errno);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  fs::path temporary = path;
  temporary += fmt::format(".tmp.{}", ::getpid());
  write_file_durably(temporary, bytes);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail_writing(path, "rename into place", error);
  }
  flush_folder(path.parent_path());
}

void publish_folder(const fs::path& folder, const fs::path& target) {
  flush_folder(folder);
  if (::rename(folder.c_str(), target.c_str()) != 0) fail_writing(target, "publish", errno);
  flush_folder(target.parent_path());
}

void create_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail_writing(path, "create the folder", error.value());
  flush_folder(fs::absolute(path).parent_path());
}

std::uintmax_t free_disk_bytes(const fs::path& path) {
  fs::path existing = fs::absolute(path);
  while (!fs::exists(existing) && existing.has_parent_path() && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  std::error_code error;
  const fs::space_info space = fs::space(existing, error);
  return error ? 0 : space.available;
}

}  // namespace fovea
