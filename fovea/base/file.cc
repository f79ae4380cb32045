// SPDX-License-Identifier: Apache-2.0
#include "fovea/base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/check.h"
#include "fovea/base/machine.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_writing(const fs::path& path, std::string_view doing, int error) {
  const ErrorCode code = code_of_failed_write(error);
  throw Error(code, fmt::format("{}: cannot {}: {}", path.string(), doing, std::strerror(error)),
              code == ErrorCode::kDiskFull
                  ? "free some space, or write to another disk"
                  : "check the path and its permissions, or choose another output");
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// A folder that is opened before the work begins, so that opening it cannot fail after the work is
// done.
class Folder {
 public:
  explicit Folder(const fs::path& path)
      : path_(path.empty() ? "." : path),
        fd_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (fd_.get() < 0) fail_writing(path_, "open the folder", errno);
  }

  /// Makes the names in it durable. Some file systems cannot flush a folder and answer EINVAL.
  void flush() const {
    if (::fsync(fd_.get()) != 0 && errno != EINVAL) fail_writing(path_, "flush the folder", errno);
  }

 private:
  fs::path path_;
  Descriptor fd_;
};

void require_regular(const struct stat& status, const fs::path& path) {
  if (S_ISREG(status.st_mode)) return;
  throw Error(ErrorCode::kWrite,
              fmt::format("{}: expected a regular file, got {}", path.string(),
                          kind_of_file(status.st_mode)),
              "choose another output");
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

// The parent folder; a slash at the end is ignored: "a" for "a/b" and for "a/b/".
fs::path parent_of(const fs::path& path) {
  return path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
}

// Appends to `made` each folder as it is created.
void create_missing(const fs::path& path, std::vector<fs::path>& made) {
  std::error_code error;
  if (fs::is_directory(path, error)) return;
  const fs::path parent = parent_of(path);
  if (!parent.empty()) create_missing(parent, made);
  if (create_folder(path)) made.push_back(path);
}

// An empty file. O_NONBLOCK: opening a FIFO must not wait for a reader.
int open_to_write(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666));
  if (fd.get() < 0) fail_writing(path, "create", errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail_writing(path, "inspect", errno);
  require_regular(status, path);
  if (::ftruncate(fd.get(), 0) != 0) {
    const int error = errno;
    ::unlink(path.c_str());
    fail_writing(path, "truncate", error);
  }
  return fd.release();
}

void close_durably(Descriptor& fd, const fs::path& path) {
  if (::fsync(fd.get()) != 0) fail_writing(path, "flush", errno);
  if (::close(fd.release()) != 0) fail_writing(path, "close", errno);
}

[[noreturn]] void fail_too_large(const fs::path& path, std::uint64_t bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("{}: {} bytes do not fit into memory", path.string(), bytes),
              "use a smaller file");
}

// Linux overcommits memory: without this check, reading a huge sparse file would get the process
// killed.
void require_memory(const fs::path& path, std::uint64_t bytes) {
  constexpr std::uint64_t kLittle = std::uint64_t{64} << 20;
  if (bytes <= kLittle) return;
  const std::int64_t available = available_memory().bytes;
  if (bytes > static_cast<std::uint64_t>(available)) fail_too_large(path, bytes);
}

}  // namespace

std::string read_file(const fs::path& path) {
  const FileSource file(path);
  require_memory(path, file.size());
  try {
    return read_all(file.descriptor(), static_cast<std::size_t>(file.size()) + 1, path);
  } catch (const std::bad_alloc&) {
    fail_too_large(path, file.size());
  } catch (const std::length_error&) {
    fail_too_large(path, file.size());
  }
}

void write_file_durably(const fs::path& path, std::string_view bytes,
                        std::span<const std::string_view> more) {
  Descriptor fd(open_to_write(path));
  try {
    write_all(fd.get(), bytes, path);
    for (const std::string_view piece : more) write_all(fd.get(), piece, path);
    close_durably(fd, path);
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

struct AtomicFile::Opened {
  Folder folder;
  Descriptor fd;
};

AtomicFile::AtomicFile(const fs::path& path) : path_(path), target_(path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    require_regular(status, path);
    // A link stays a link: the file that it points to is replaced.
    target_ = fs::canonical(path);
    mode_ = status.st_mode & 07777;
  }
  Folder folder(target_.parent_path());
  static std::atomic<unsigned> number{0};  // two threads may write to one path
  temporary_ = target_;
  temporary_ += fmt::format(".tmp.{}.{}", ::getpid(), number.fetch_add(1));
  opened_.reset(new Opened{std::move(folder), Descriptor(open_to_write(temporary_))});
}

AtomicFile::~AtomicFile() {
  if (opened_) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::string_view bytes) { write_all(opened_->fd.get(), bytes, temporary_); }

void AtomicFile::publish() {
  close_durably(opened_->fd, temporary_);
  const bool same_mode = !mode_ || ::chmod(temporary_.c_str(), *mode_) == 0;
  if (!same_mode || ::rename(temporary_.c_str(), target_.c_str()) != 0) {
    fail_writing(path_, "rename into place", errno);
  }
  const std::unique_ptr<Opened> done = std::move(opened_);
  done->folder.flush();
}

void write_file_atomically(const fs::path& path, std::string_view bytes,
                           std::span<const std::string_view> more) {
  AtomicFile file(path);
  file.write(bytes);
  for (const std::string_view piece : more) file.write(piece);
  file.publish();
}

void publish_folder(const fs::path& folder, const fs::path& target) {
  const Folder parent(target.parent_path());
  Folder(folder).flush();
  struct stat status {};
  if (::lstat(target.c_str(), &status) == 0) {
    throw Error(ErrorCode::kOutputExists, fmt::format("{}: exists already", target.string()),
                "remove it, or choose another output");
  }
  if (::rename(folder.c_str(), target.c_str()) != 0) fail_writing(target, "publish", errno);
  parent.flush();
}

void exchange_folders(const fs::path& a, const fs::path& b) {
  const Folder parent(b.parent_path());
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) fail_writing(b, "exchange", errno);
    fs::path aside = a;
    aside += ".aside";
    const bool done = ::rename(b.c_str(), aside.c_str()) == 0 &&
                      ::rename(a.c_str(), b.c_str()) == 0 &&
                      ::rename(aside.c_str(), a.c_str()) == 0;
    if (!done) fail_writing(b, "exchange", errno);
  }
  parent.flush();
}

ErrorCode code_of_failed_write(int error) {
  return error == ENOSPC || error == EDQUOT ? ErrorCode::kDiskFull : ErrorCode::kWrite;
}

bool create_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return false;
  const Folder parent(parent_of(path));
  const bool made = ::mkdir(path.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) fail_writing(path, "create the folder", errno);
  if (!fs::is_directory(path, error)) fail_writing(path, "create the folder", ENOTDIR);
  try {
    parent.flush();
  } catch (...) {
    if (made) ::rmdir(path.c_str());
    throw;
  }
  return made;
}

std::vector<fs::path> create_folders(const fs::path& path) {
  std::vector<fs::path> made;
  try {
    create_missing(path, made);
  } catch (...) {
    remove_empty_folders(made);
    throw;
  }
  return made;
}

void remove_empty_folders(std::span<const fs::path> folders) {
  for (std::size_t i = folders.size(); i-- > 0;) ::rmdir(folders[i].c_str());
}

void remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_writing(path, "remove", errno);
}

bool leads_to(const fs::path& path, int file) {
  struct stat ours {
  }, there{};
  return ::fstat(file, &ours) == 0 && ::stat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

HeldFolder::HeldFolder(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (fd_ < 0) fail_writing(path_, "open the folder", errno);
}

HeldFolder::~HeldFolder() { ::close(fd_); }

bool HeldFolder::is_in_place() const { return leads_to(path_, fd_); }

std::uintmax_t free_disk_bytes(const fs::path& path) {
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (!fs::exists(existing, error) && existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  const fs::space_info space = fs::space(existing, error);
  return error ? UINTMAX_MAX : space.available;
}

namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

// Opens a folder, by a path relative to an open one. Returns null and sets errno if that fails.
OpenFolder open_folder(int parent, const char* path, int flags) {
  const int file = ::openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags);
  if (file < 0) return nullptr;
  OpenFolder folder(::fdopendir(file));
  if (folder == nullptr) {
    const int reason = errno;
    ::close(file);
    errno = reason;
  }
  return folder;
}

void note(std::error_code& error) {
  if (errno == ENOMEM) throw std::bad_alloc();
  if (!error) error.assign(errno, std::generic_category());
}

// Calls f with each name.
template <class F>
void for_each_name(DIR* folder, std::error_code& error, F&& f) {
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(folder);
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") f(entry->d_name);
  }
  if (errno != 0) note(error);
}

void remove_below(int parent, const char* name, std::error_code& error) {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT) return;
  if (errno != EISDIR) return note(error);
  const OpenFolder folder = open_folder(parent, name, O_NOFOLLOW);
  if (folder == nullptr) return note(error);
  for_each_name(folder.get(), error,
                [&](const char* inside) { remove_below(::dirfd(folder.get()), inside, error); });
  if (::unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT) note(error);
}

}  // namespace

std::vector<std::string> names_in(const std::filesystem::path& folder, std::error_code& error) {
  error.clear();
  std::vector<std::string> names;
  const OpenFolder open = open_folder(AT_FDCWD, folder.c_str(), 0);
  if (open == nullptr) {
    note(error);
  } else {
    for_each_name(open.get(), error, [&](const char* name) { names.emplace_back(name); });
  }
  return names;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (!error) return names;
  throw Error(ErrorCode::kRead,
              fmt::format("{}: cannot list the folder: {}", folder.string(), error.message()),
              "check the path and its permissions");
}

void remove_tree(const std::filesystem::path& path, std::error_code& error) {
  error.clear();
  remove_below(AT_FDCWD, path.c_str(), error);
}

}  // namespace fovea
