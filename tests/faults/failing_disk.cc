// SPDX-License-Identifier: Apache-2.0
// A disk that fails, for tests: loaded before the C library (LD_PRELOAD), it counts the calls that
// concern files below one folder, and lets the n-th of them fail, or kills the process there.
//
//   FAULTS_BELOW=FOLDER   an absolute path, as the process names it
//   FAULTS_AT=N           from 1; 0: none, all are only counted
//   FAULTS_KIND=kill      SIGKILL, before the call is made
//               full      ENOSPC, then and from then on, where a call needs room
//               error     EIO, once
//               short     a write writes half, once
//   FAULTS_LOG=FILE       a line for each call: what it is
//
// Nothing is flushed to the real disk: the machine does not go down in these tests, and flushing
// would take most of their time.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

std::string_view setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Which descriptors are of files below the folder.
std::array<std::atomic<bool>, 1024> watched{};
std::atomic<int> calls{0};
std::atomic<bool> is_full{false};

bool is_watched(int fd) {
  return fd >= 0 && fd < static_cast<int>(watched.size()) && watched[static_cast<std::size_t>(fd)];
}

void watch(int fd, bool on) {
  if (fd >= 0 && fd < static_cast<int>(watched.size())) watched[static_cast<std::size_t>(fd)] = on;
}

// A relative path is below the folder if what it is relative to is.
bool is_below(int directory, const char* path) {
  static const std::string_view folder = setting("FAULTS_BELOW");
  if (folder.empty() || path == nullptr) return false;
  if (path[0] != '/' && directory != AT_FDCWD) return is_watched(directory);
  const std::string_view name = path;
  return name.starts_with(folder) && (name.size() == folder.size() || name[folder.size()] == '/');
}

void log_call(std::string_view what) {
  static const int log = [] {
    const char* name = std::getenv("FAULTS_LOG");
    if (name == nullptr) return -1;
    return real<int(const char*, int, ...)>("open")(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                                                    0666);
  }();
  if (log < 0) return;
  std::array<char, 64> line{};
  const std::size_t size = std::min(what.size(), line.size() - 1);
  std::memcpy(line.data(), what.data(), size);
  line[size] = '\n';
  [[maybe_unused]] const ssize_t n =
      real<ssize_t(int, const void*, std::size_t)>("write")(log, line.data(), size + 1);
}

enum class Fault { kNone, kFails, kHalf };

// Counts a call, and says what becomes of it; errno is set where it fails.
Fault next_call(bool concerned, std::string_view what, bool needs_room) {
  if (!concerned) return Fault::kNone;
  static const int at = std::atoi(setting("FAULTS_AT").data());
  static const std::string_view kind = setting("FAULTS_KIND");
  log_call(what);
  const bool now = ++calls == at;
  if (now && kind == "kill") ::kill(::getpid(), SIGKILL);
  if (now && kind == "full") is_full = true;
  if (now && kind == "short") return Fault::kHalf;
  if (is_full && needs_room) {
    errno = ENOSPC;
    return Fault::kFails;
  }
  if (now && kind == "error") {
    errno = EIO;
    return Fault::kFails;
  }
  return Fault::kNone;
}

bool fails(bool concerned, std::string_view what, bool needs_room = false) {
  return next_call(concerned, what, needs_room) == Fault::kFails;
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  const bool concerned = is_below(directory, path);
  const bool creates = (flags & O_CREAT) != 0;
  const bool counts = concerned && (flags & O_PATH) == 0;
  if (fails(counts, creates ? "create" : "open", creates)) return -1;
  const int fd = real<int(int, const char*, int, ...)>("openat")(directory, path, flags, mode);
  watch(fd, concerned);
  return fd;
}

mode_t mode_of(int flags, std::va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

template <class Write>
ssize_t write_to(int fd, std::size_t size, Write&& write) {
  switch (next_call(is_watched(fd), "write", true)) {
    case Fault::kFails:
      return -1;
    case Fault::kHalf:
      return write((size + 1) / 2);
    case Fault::kNone:
      break;
  }
  return write(size);
}

template <class Call>
int unless_failing(bool concerned, std::string_view what, Call&& call, bool needs_room = false) {
  return fails(concerned, what, needs_room) ? -1 : call();
}

}  // namespace

// NOLINTBEGIN: names and signatures are those of the C library.
extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char* path, int flags, ...) {
  std::va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(directory, path, flags, mode);
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));
int openat64(int directory, const char* path, int flags, ...) __attribute__((alias("openat")));

int close(int fd) {
  const bool concerned = is_watched(fd);
  watch(fd, false);
  const int done = real<int(int)>("close")(fd);
  return fails(concerned, "close") ? -1 : done;
}

ssize_t read(int fd, void* to, std::size_t size) {
  if (fails(is_watched(fd), "read")) return -1;
  return real<ssize_t(int, void*, std::size_t)>("read")(fd, to, size);
}

dirent* readdir(DIR* folder) {
  if (fails(is_watched(::dirfd(folder)), "list")) return nullptr;
  return real<dirent*(DIR*)>("readdir")(folder);
}

dirent64* readdir64(DIR* folder) { return reinterpret_cast<dirent64*>(readdir(folder)); }

ssize_t write(int fd, const void* from, std::size_t size) {
  return write_to(fd, size, [&](std::size_t n) {
    return real<ssize_t(int, const void*, std::size_t)>("write")(fd, from, n);
  });
}

ssize_t pwrite(int fd, const void* from, std::size_t size, off_t at) {
  return write_to(fd, size, [&](std::size_t n) {
    return real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite")(fd, from, n, at);
  });
}

ssize_t pwrite64(int fd, const void* from, std::size_t size, off_t at)
    __attribute__((alias("pwrite")));

int ftruncate(int fd, off_t size) {
  return unless_failing(is_watched(fd), "truncate",
                        [&] { return real<int(int, off_t)>("ftruncate")(fd, size); });
}

int ftruncate64(int fd, off_t size) __attribute__((alias("ftruncate")));

int fsync(int fd) { return fails(is_watched(fd), "flush", true) ? -1 : 0; }

int fdatasync(int fd) { return fails(is_watched(fd), "flush", true) ? -1 : 0; }

int rename(const char* from, const char* to) {
  return unless_failing(
      is_below(AT_FDCWD, from), "rename",
      [&] { return real<int(const char*, const char*)>("rename")(from, to); }, true);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to,
              unsigned flags) {
  return unless_failing(
      is_below(from_directory, from), "rename",
      [&] {
        return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(
            from_directory, from, to_directory, to, flags);
      },
      true);
}

int mkdir(const char* path, mode_t mode) {
  return unless_failing(
      is_below(AT_FDCWD, path), "mkdir",
      [&] { return real<int(const char*, mode_t)>("mkdir")(path, mode); }, true);
}

int chmod(const char* path, mode_t mode) {
  return unless_failing(is_below(AT_FDCWD, path), "chmod",
                        [&] { return real<int(const char*, mode_t)>("chmod")(path, mode); });
}

int unlink(const char* path) {
  return unless_failing(is_below(AT_FDCWD, path), "unlink",
                        [&] { return real<int(const char*)>("unlink")(path); });
}

int unlinkat(int directory, const char* path, int flags) {
  return unless_failing(is_below(directory, path), "unlink", [&] {
    return real<int(int, const char*, int)>("unlinkat")(directory, path, flags);
  });
}

int rmdir(const char* path) {
  return unless_failing(is_below(AT_FDCWD, path), "rmdir",
                        [&] { return real<int(const char*)>("rmdir")(path); });
}

int remove(const char* path) noexcept {
  return unless_failing(is_below(AT_FDCWD, path), "unlink",
                        [&] { return real<int(const char*)>("remove")(path); });
}

}  // extern "C"
// NOLINTEND
