// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace fs = std::filesystem;

std::string_view ByteSource::view(std::uint64_t begin, std::size_t bytes, std::string& room) const {
  room.resize(bytes);
  read(begin, room);
  return room;
}

void MemorySource::read(std::uint64_t begin, std::span<char> to) const {
  const std::string_view from = bytes_.substr(static_cast<std::size_t>(begin), to.size());
  std::copy(from.begin(), from.end(), to.begin());
}

std::string_view MemorySource::view(std::uint64_t begin, std::size_t bytes, std::string&) const {
  return bytes_.substr(static_cast<std::size_t>(begin), bytes);
}

FileSource::FileSource(fs::path path) : path_(std::move(path)) {
  mode_t mode = 0;
  fd_ = open_to_read(path_, mode);
  struct stat status {};
  if (S_ISREG(mode) && ::fstat(fd_, &status) == 0) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  ::close(fd_);  // the destructor does not run if the constructor throws
  throw Error(
      ErrorCode::kNotARegularFile,
      fmt::format("{}: expected a regular file, got {}", path_.string(), kind_of_file(mode)),
      "name a regular file; save a stream to a file first");
}

FileSource::~FileSource() { ::close(fd_); }

void FileSource::read(std::uint64_t begin, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t n = ::pread(fd_, to.data(), to.size(), static_cast<off_t>(begin));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kRead, "{}: cannot read: {}", path_.string(), std::strerror(errno));
    if (n == 0) {
      throw Error(ErrorCode::kRead,
                  fmt::format("{}: ends at byte {}; it had {} when it was opened", path_.string(),
                              begin, size_),
                  "somebody else is writing the file; wait until that is done");
    }
    begin += static_cast<std::uint64_t>(n);
    to = to.subspan(static_cast<std::size_t>(n));
  }
}

int open_to_read(const fs::path& path, mode_t& mode) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    throw Error(missing ? ErrorCode::kMissingInput : ErrorCode::kRead,
                fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)),
                missing ? "check the path" : "check the permissions of the file");
  }
  struct stat status {};
  if (::fstat(fd, &status) != 0) {
    const int error = errno;
    ::close(fd);
    fail(ErrorCode::kRead, "{}: cannot inspect: {}", path.string(), std::strerror(error));
  }
  mode = status.st_mode;
  return fd;
}

std::string_view kind_of_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  return S_ISFIFO(mode) ? "a FIFO" : "a device or socket";
}

}  // namespace fovea
