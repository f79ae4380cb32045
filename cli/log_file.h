// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <streambuf>
#include <string>

namespace fovea::cli {

/// A file that is added to at every flush of the stream above it. The first write that fails is
/// warned of on stderr, and ends the log: the work that it tells of goes on.
class LogFile final : public std::streambuf {
 public:
  LogFile() = default;
  ~LogFile() override;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Throws kWrite if it cannot be opened, or created.
  void open(const std::string& path);
  bool is_open() const { return file_ >= 0; }
  /// Throws kDiskFull or kWrite if a write has failed since it was opened.
  void close();

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override;

 private:
  int write_pending();

  std::string path_, pending_;
  int file_ = -1;
  int error_ = 0;  // errno of the first failure
};

}  // namespace fovea::cli
