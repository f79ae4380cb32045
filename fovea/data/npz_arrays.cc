// SPDX-License-Identifier: Apache-2.0
#include "fovea/data/npz_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fovea/base/error.h"
#include "fovea/base/words.h"
#include "fovea/text/utf8.h"

namespace fovea {

NpzArrays::NpzArrays(const ByteSource& file, std::string name)
    : name_(std::move(name)), source_(file, name_) {}

bool NpzArrays::has(std::string_view array) const { return place(array) < source_.names().size(); }

std::size_t NpzArrays::required(std::string_view array, const std::string& hint) const {
  if (has(array)) return place(array);
  std::string names;
  for (const std::string& one : source_.names()) {
    if (names.size() < 200) names += (names.empty() ? "" : ", ") + printable(one);
  }
  throw Error(ErrorCode::kInputFormat,
              fmt::format("{}: there is no array {}; the file has {}", name_, array,
                          names.empty() ? "none" : names),
              hint);
}

std::string NpzArrays::where(std::string_view array) const {
  return fmt::format("{}: {}", name_, array);
}

std::size_t NpzArrays::place(std::string_view array) const {
  const auto& names = source_.names();
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), array) - names.begin());
}

std::string text_of_characters(const std::int32_t* characters, index width,
                               const std::string& where) {
  std::string text;
  for (index c = 0; c < width && characters[c] != 0; ++c) {
    const std::int32_t code = characters[c];
    if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      throw Error(ErrorCode::kInputFormat, fmt::format("{}: {} is no character", where, code),
                  "write the file again, with numpy.savez");
    }
    append_utf8(text, static_cast<char32_t>(code));
  }
  return text;
}

}  // namespace fovea
