// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <streambuf>
#include <string>

namespace fovea::cli {

/// A stream buffer that appends to a file at every flush. After the first write that fails it warns
/// on stderr and writes nothing more; the command goes on.
class LogFile final : public std::streambuf {
 public:
  LogFile() = default;
  ~LogFile() override;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Throws kWrite if the file cannot be opened or created.
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
