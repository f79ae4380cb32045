// SPDX-License-Identifier: Apache-2.0
// Tells running text from words a line with columns, where nobody has said which a file is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "fovea/base/bytes.h"

namespace fovea {

enum class LineForm {
  kColumns,  ///< a word a line, alone or with columns
  kText,     ///< a sentence a line
};

/// The signs by which columns are told from words.
struct ColumnSigns {
  std::function<bool(std::string_view)> is_tag;  ///< whether a last column says so
  bool comments = false;                         ///< lines that begin with # say nothing
};

/// The form that the first lines show; nothing as long as more lines could change it. `is_all`: no
/// more follow. A tab, a word alone in the first line, or two lines of as many words that end with
/// a tag make columns. Other lines of several words make text. Only lines up to an empty one count,
/// unless all of these end with a tag.
std::optional<LineForm> form_of_lines(std::string_view lines, bool is_all,
                                      const ColumnSigns& signs);

/// Reads as far as is needed to know the form, and gives what was read back: `stream` becomes one
/// of all bytes. Throws as it does.
LineForm find_line_form(std::unique_ptr<ByteStream>& stream, const ColumnSigns& signs);

}  // namespace fovea
