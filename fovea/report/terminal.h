// SPDX-License-Identifier: Apache-2.0
// The terminal that a stream leads to: its kind, and the width of text on it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

struct Terminal {
  bool interactive = false;  ///< a line can be redrawn
  bool color = false;
  bool unicode = false;  ///< more than ASCII can be shown
};

/// Looks a variable up in the environment: null where it is not set.
using Environment = std::function<const char*(const char* name)>;

/// Describes the terminal of a file descriptor. It is interactive if it is a terminal and TERM is
/// neither missing nor "dumb". It has colour if it is interactive or CLICOLOR_FORCE is set, unless
/// NO_COLOR is set. LC_ALL, LC_CTYPE or LANG decides whether it shows Unicode.
Terminal inspect_terminal(int descriptor, const Environment& environment);
Terminal inspect_terminal(int descriptor);

/// Columns of the terminal; 80 if that is not known.
int terminal_columns(int descriptor);

/// Columns that UTF-8 text takes: 2 for wide characters, 0 for combining ones and controls. Bytes
/// that are not UTF-8 count 1 each.
index display_width(std::string_view text);

/// The characters of UTF-8 text as they stand on a terminal: each with the combining ones behind
/// it.
std::vector<std::string> glyphs_of(std::string_view text);

/// The text, or as much of it as fits into `columns` with "..." at its end.
std::string fit_columns(std::string_view text, index columns);

}  // namespace fovea
