// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <string>

#include "fovea/base/check.h"
#include "fovea/base/file.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// The process that holds the lock, as it wrote it; "" if it has not written it yet.
std::string holder_of(int file) {
  std::array<char, 32> text{};
  const ssize_t length = ::pread(file, text.data(), text.size(), 0);
  std::string holder(text.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  const auto no_digit = [](unsigned char c) { return std::isdigit(c) == 0; };
  holder.erase(std::find_if(holder.begin(), holder.end(), no_digit), holder.end());
  return holder;
}

[[noreturn]] void fail_locked(const fs::path& folder, int file) {
  const std::string holder = holder_of(file);
  ::close(file);
  throw Error(ErrorCode::kOutputExists,
              fmt::format("{}: another training is at work in this folder{}", folder.string(),
                          holder.empty() ? "" : fmt::format(" (process {})", holder)),
              "wait for it, stop it, or choose another folder");
}

// Whether the file is as a lock is: it holds nothing, or the number of a process and a newline, and
// has no other name.
bool is_ours(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink > 1) return false;
  const std::string holder = holder_of(file);
  return status.st_size == 0 || (!holder.empty() && status.st_size <= 1 + std::ssize(holder));
}

[[noreturn]] void fail_foreign(const fs::path& path, int file) {
  ::close(file);
  throw Error(ErrorCode::kOutputExists,
              fmt::format("{}: expected the lock of a training, found another file", path.string()),
              "choose another folder, or move the file away");
}

bool is_taken(int file, int operation) {
  while (::flock(file, operation | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK;
  }
  return false;
}

}  // namespace

RunLock::RunLock(const fs::path& folder) : path_(folder / kLockName) {
  for (;;) {
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int file = ::open(path_.c_str(), kFlags, 0666);
    if (file < 0) {
      fail(code_of_failed_write(errno), "{}: {}", path_.string(), std::strerror(errno));
    }
    if (!is_ours(file)) fail_foreign(path_, file);
    if (is_taken(file, LOCK_EX)) fail_locked(folder, file);
    // Another process may have removed its lock file between our open and our flock.
    if (!leads_to(path_, file)) {
      ::close(file);
      continue;
    }
    file_ = file;
    break;
  }
  const std::string holder = fmt::format("{}\n", ::getpid());
  // The process id is only information, so a failed write is ignored.
  if (::ftruncate(file_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(file_, holder.data(), holder.size(), 0);
  }
}

RunLock::~RunLock() {
  // The file is removed while it is locked: a process that has opened it meanwhile then sees that
  // it is gone.
  if (is_in_place()) ::unlink(path_.c_str());
  ::close(file_);
}

bool RunLock::is_in_place() const { return leads_to(path_, file_); }

void require_unlocked(const fs::path& folder) {
  const int file =
      ::open((folder / kLockName).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return;
  if (is_taken(file, LOCK_SH)) fail_locked(folder, file);
  ::close(file);
}

}  // namespace fovea
