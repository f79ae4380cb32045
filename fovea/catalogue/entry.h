// SPDX-License-Identifier: Apache-2.0
// One text of the catalogue: an English format string and its translation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// A format string of fmt, cut at its places: literals[0] place[0] literals[1] ... The last literal
/// stands behind the last place.
struct FormatPieces {
  struct Place {
    std::size_t argument = 0;
    bool is_number = false;  ///< {:.3f}, {:d}: what stands there is a number
  };
  std::vector<std::string> literals;
  std::vector<Place> places;
};

/// Nothing if the text is no format string: a brace without its other one.
std::optional<FormatPieces> pieces_of(std::string_view format);

struct CatalogueEntry {
  std::string english, chinese;
  bool is_word = false;  ///< a word that is translated only within a message: msgctxt "word"
};

/// The entries of a .po file that have a translation. Throws kInternal, with the line, for what is
/// none.
std::vector<CatalogueEntry> read_po(std::string_view file);

/// What stands in the places of a format in this text; nothing if the text was not made with it.
std::optional<std::vector<std::string_view>> match_format(const FormatPieces& format,
                                                          std::string_view text);

}  // namespace fovea
