// SPDX-License-Identifier: Apache-2.0
// Readers of a stream give the same, in whatever pieces it comes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "fovea/base/bytes.h"
#include "tests/fuzz/fuzz.h"

namespace fovea {

/// Bytes in pieces of at most `most`.
class Pieces final : public ByteStream {
 public:
  Pieces(std::string_view bytes, std::size_t most) : bytes_(bytes), most_(most) {}
  std::size_t read(std::span<char> to) override {
    const std::size_t n = bytes_.copy(to.data(), std::min(most_, to.size()));
    bytes_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view bytes_;
  std::size_t most_;
};

/// What read(stream, to) has appended to `to`, and the message of its error.
template <class Read>
std::string read_pieces(std::string_view bytes, std::size_t most, Read&& read) {
  std::string all;
  try {
    read(std::make_unique<Pieces>(bytes, most), all);
  } catch (const Error& error) {
    all += error.what();
  }
  return all;
}

/// Requires the same of large pieces and of small ones.
template <class Read>
void require_same_in_pieces(std::string_view bytes, Read&& read) {
  require(read_pieces(bytes, 1 << 20, read) == read_pieces(bytes, 3, read));
}

}  // namespace fovea
