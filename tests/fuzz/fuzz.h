// SPDX-License-Identifier: Apache-2.0
// Every fuzzer says of a reader that it returns or throws fovea::Error, and that nothing else
// happens.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fovea/base/error.h"

namespace fovea {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs read(), which may refuse its input.
template <class Read>
void allow_refusal(Read&& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

inline void require(bool holds) {
  if (!holds) std::abort();
}

/// A file in memory, for readers that take a path.
class FuzzFile {
 public:
  explicit FuzzFile(std::string_view bytes) : fd_(::memfd_create("input", 0)) {
    require(fd_ >= 0 &&
            ::write(fd_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~FuzzFile() { ::close(fd_); }
  FuzzFile(const FuzzFile&) = delete;
  FuzzFile& operator=(const FuzzFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace fovea
