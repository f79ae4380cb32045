// SPDX-License-Identifier: Apache-2.0
// The arrays of an .npz file by name, for what reads certain ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/base/bytes.h"
#include "fovea/tensor/npz.h"

namespace fovea {

class NpzArrays {
 public:
  /// `file` must outlive it; `name` begins each message. Throws as NpzSource does.
  NpzArrays(const ByteSource& file, std::string name);

  bool has(std::string_view array) const;
  /// The number of an array in source(). Throws kInputFormat, which lists those of the file.
  std::size_t required(std::string_view array, const std::string& hint) const;

  const NpzSource& source() const { return source_; }
  /// "FILE: ARRAY".
  std::string where(std::string_view array) const;

 private:
  std::size_t place(std::string_view array) const;

  std::string name_;
  NpzSource source_;
};

/// A text of an array of texts (NpzSource::read_texts): the characters up to the first 0. `where`
/// begins the message. Throws kInputFormat for what is no character.
std::string text_of_characters(const std::int32_t* characters, index width,
                               const std::string& where);

}  // namespace fovea
