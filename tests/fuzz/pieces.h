// SPDX-License-Identifier: Apache-2.0
// Readers of a stream give the same, in whatever pieces it comes.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "fovea/base/bytes.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/drip.h"

namespace fovea {

/// The bytes that read(stream, to) appends to `to`, and the message of its error.
template <class Read>
std::string read_pieces(std::string_view bytes, std::size_t most, Read&& read) {
  std::string all;
  try {
    read(std::make_unique<Drip>(std::string(bytes), most), all);
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
