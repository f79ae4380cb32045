// SPDX-License-Identifier: Apache-2.0
// Helpers for strings.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// Whether `word` is an entry of `list`, whose entries are separated by `separator`: "cpu" in
/// "cpu,cpuacct".
bool has_word(std::string_view list, char separator, std::string_view word);

/// The parts of a text, views of it: "a,,b" has three. An empty text has one, which is empty.
std::vector<std::string_view> parts_between(std::string_view text, char separator);

/// Whether the text is one or more digits 0 to 9.
bool is_all_digits(std::string_view text);

/// The text as one word of a POSIX shell, in quotes where it needs them, so that a printed command
/// can be pasted. It uses no backslash, which would be escaped for the terminal.
std::string shell_word(std::string_view text);

}  // namespace fovea
