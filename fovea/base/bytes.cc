// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/bytes.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/machine.h"
#include "fovea/base/words.h"

namespace fovea {

namespace fs = std::filesystem;

std::string_view ByteSource::view(std::uint64_t begin, std::size_t bytes, std::string& room) const {
  room.resize(bytes);
  read(begin, room);
  return room;
}

SharedBytes ByteSource::share(std::uint64_t begin, std::size_t bytes) const {
  std::vector<std::uint8_t> copied(bytes);
  if (bytes > 0) read(begin, {reinterpret_cast<char*>(copied.data()), bytes});
  return copied;
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

SharedBytes FileSource::share(std::uint64_t begin, std::size_t bytes) const {
  if (bytes == 0 || begin % 2 != 0) return ByteSource::share(begin, bytes);
  std::call_once(asked_, [this] { mapped_ = MappedFile::map(fd_, size_, path_); });
  if (!mapped_) return ByteSource::share(begin, bytes);
  return {mapped_, static_cast<std::size_t>(begin), bytes};
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

namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;
constexpr std::size_t kLargestPart = std::size_t{64} << 20;

// The text so far, in parts: a string that grows would hold the text twice.
class Parts {
 public:
  Parts(std::string_view name, std::string_view hint) : name_(name), hint_(hint) {}

  void start(std::uint64_t expected) {
    if (expected > 0) add_part(expected + 1);  // one more shows that the end has come
  }

  void append(std::string_view bytes) {
    while (!bytes.empty()) {
      if (parts_.empty() || parts_.back().size() == parts_.back().capacity()) {
        add_part(std::clamp(size_ / 4, kPiece, kLargestPart));
      }
      std::string& part = parts_.back();
      const std::size_t room = part.capacity() - part.size();
      part.append(bytes.substr(0, room));
      size_ += std::min(room, bytes.size());
      bytes.remove_prefix(std::min(room, bytes.size()));
    }
  }

  std::size_t size() const { return size_; }

  // Each part is freed as soon as it has been copied.
  std::string take() {
    if (parts_.empty()) return {};
    if (parts_.size() == 1) return std::move(parts_[0]);
    std::string all;
    all.reserve(size_);
    for (std::string& part : parts_) {
      all += part;
      part = std::string();
    }
    return all;
  }

 private:
  void add_part(std::uint64_t bytes) {
    // Without this check the memory limit of a container would kill the process. Several parts are
    // copied in the end.
    const double copied = parts_.empty() ? 0 : static_cast<double>(size_ + bytes);
    const double more = static_cast<double>(bytes) + copied;
    if (more > static_cast<double>(kPiece) &&
        more > static_cast<double>(available_memory().bytes)) {
      require_memory(name_, static_cast<double>(size_) + more, hint_);
    }
    parts_.emplace_back();
    parts_.back().reserve(bytes);
  }

  std::string_view name_, hint_;
  std::vector<std::string> parts_;
  std::size_t size_ = 0;
};

// Whether a read would wait. At the end of a stream, and in a regular file, it would not.
bool has_nothing_yet(int fd) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wanted, 1, 0) == 0;
}

}  // namespace

std::size_t MemoryStream::read(std::span<char> to) {
  const std::size_t bytes = bytes_.copy(to.data(), to.size());
  bytes_.remove_prefix(bytes);
  return bytes;
}

FileStream::FileStream(const std::string& file) : name_(name_of_input(file)) {
  if (file == "-") return;  // descriptor 0, whatever it is
  mode_t mode = 0;
  fd_ = open_to_read(file, mode);
  struct stat status {};
  if (S_ISREG(mode) && ::fstat(fd_, &status) == 0) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  is_fifo_ = S_ISFIFO(mode);
  if (is_fifo_) return;
  ::close(fd_);  // the destructor does not run if the constructor throws
  throw Error(
      ErrorCode::kNotARegularFile,
      fmt::format("{}: expected a regular file or a pipe, got {}", name_, kind_of_file(mode)),
      "name a file, or give - for standard input");
}

FileStream::~FileStream() {
  if (fd_ != STDIN_FILENO) ::close(fd_);
}

std::size_t FileStream::read(std::span<char> to) {
  if (before_waiting_ && has_nothing_yet(fd_)) before_waiting_();
  for (;;) {
    const ssize_t n = ::read(fd_, to.data(), to.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // a pipe with a writer
      pollfd wanted{.fd = fd_, .events = POLLIN, .revents = 0};
      ::poll(&wanted, 1, -1);
      is_fifo_ = false;
      continue;
    }
    if (n < 0) {
      fail(ErrorCode::kRead, Hint{"check where the input comes from"}, "{}: cannot read: {}", name_,
           std::strerror(errno));
    }
    if (n == 0 && is_fifo_) {
      throw Error(ErrorCode::kNotARegularFile,
                  fmt::format("{}: expected a file, got a FIFO that nobody writes to", name_),
                  "start what writes to it first, or name a file");
    }
    is_fifo_ = false;
    return static_cast<std::size_t>(n);
  }
}

std::string name_of_input(const std::string& file) { return file == "-" ? "standard input" : file; }

std::string read_whole(ByteStream& stream, std::string_view name, std::string_view hint,
                       std::size_t most) {
  try {
    Parts parts(name, hint);
    parts.start(std::min<std::uint64_t>(stream.size_hint(), most));
    std::string piece(kPiece, '\0');
    while (const std::size_t bytes = stream.read(piece)) {
      parts.append({piece.data(), bytes});
      if (parts.size() <= most) continue;
      throw Error(ErrorCode::kInputFormat,
                  fmt::format("{}: the text has more than {}", name, size_text(most)),
                  std::string(hint));
    }
    return parts.take();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  throw Error(ErrorCode::kOutOfMemory, fmt::format("{}: the text does not fit into memory", name),
              std::string(hint));
}

}  // namespace fovea
