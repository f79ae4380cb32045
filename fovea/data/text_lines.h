// SPDX-License-Identifier: Apache-2.0
// A file of sentences, a line each.
#pragma once

#include <string>
#include <vector>

namespace fovea {

/// The lines of a file, a pipe or, as "-", standard input, unpacked if it is packed; without their
/// LF, and without a CR before it. Empty lines are lines; a last line need not end. Throws
/// kMissingInput, kNotARegularFile, kRead, kEmptyInput (no line at all), kEncoding, kInputFormat;
/// each names the file.
std::vector<std::string> read_text_lines(const std::string& file);

}  // namespace fovea
