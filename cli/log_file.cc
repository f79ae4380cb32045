// SPDX-License-Identifier: Apache-2.0
#include "cli/log_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "cli/output.h"
#include "fovea/base/error.h"
#include "fovea/base/file.h"

namespace fovea::cli {

LogFile::~LogFile() {
  if (is_open()) ::close(file_);
}

namespace {

// Whether a file looks like text: appending log lines to a binary file would damage it.
bool holds_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char begin[512];
  file.read(begin, sizeof(begin));
  return std::find(begin, begin + file.gcount(), '\0') == begin + file.gcount();
}

}  // namespace

void LogFile::open(const std::string& path) {
  std::error_code ignored;  // if this fails, opening the file reports the error
  if (std::filesystem::is_regular_file(path, ignored) && !holds_text(path)) {
    throw Error(ErrorCode::kUsage, fmt::format("--log-file: {}: there is no text in it", path),
                "name a new file, or a log that goes on");
  }
  path_ = path;
  // O_NONBLOCK: opening a FIFO must not wait for a reader.
  file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ >= 0) return;
  throw Error(ErrorCode::kWrite, fmt::format("--log-file: {}: {}", path, std::strerror(errno)),
              "name a file in a folder that exists and may be written");
}

void LogFile::close() {
  if (is_open() && ::close(std::exchange(file_, -1)) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return;
  throw Error(code_of_failed_write(error_),
              fmt::format("--log-file: {}: the log ends early: {}", path_, std::strerror(error_)),
              "all else is done; what was said is on stderr");
}

LogFile::int_type LogFile::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
  pending_.push_back(traits_type::to_char_type(c));
  return c;
}

std::streamsize LogFile::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  return size;
}

int LogFile::sync() {
  const bool lost = is_open() && write_pending() != 0;
  pending_.clear();
  if (!lost) return 0;
  ::close(std::exchange(file_, -1));
  warn(
      fmt::format("--log-file: {}: {}; nothing more is added to it", path_, std::strerror(error_)));
  return 0;  // so that the stream stays usable
}

// 0, or -1 with the reason in error_.
int LogFile::write_pending() {
  for (std::string_view rest = pending_; !rest.empty();) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written > 0) rest.remove_prefix(static_cast<std::size_t>(written));
    if (written > 0 || (written < 0 && errno == EINTR)) continue;
    error_ = written < 0 ? errno : EIO;
    return -1;
  }
  return 0;
}

}  // namespace fovea::cli
