// SPDX-License-Identifier: Apache-2.0
// Small texts: their parts, how names and sizes are shown, and bytes as text.
#pragma once

#include <algorithm>
#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// Whether `word` is an entry of `list`, whose entries are separated by `separator`: "cpu" in
/// "cpu,cpuacct".
bool has_word(std::string_view list, char separator, std::string_view word);

/// Whether one of the names is this one.
template <std::ranges::input_range Names>
bool contains(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != std::ranges::end(names);
}

/// The parts of a text, views of it: "a,,b" has three. An empty text has one, which is empty.
std::vector<std::string_view> parts_between(std::string_view text, char separator);

/// Whether the text is one or more digits 0 to 9.
bool is_all_digits(std::string_view text);

/// The text as one word of a POSIX shell, in quotes where it needs them, so that a printed command
/// can be pasted. It uses no backslash, which would be escaped for the terminal.
std::string shell_word(std::string_view text);

/// Makes a name from an untrusted file safe to print on a terminal: in quotes, at most 60 bytes of
/// it. Control and format characters, and bytes that are not UTF-8, are written as \xNN.
std::string printable(std::string_view name);

/// A number of bytes as people read it, in the largest unit that gives at least 1: "512 B",
/// "1.50 KiB", "67.1 MiB", "859 GiB", "64.0 TiB". From KiB on it has three digits or more.
std::string size_text(double bytes);

template <std::integral T>
std::string size_text(T bytes) {
  return size_text(static_cast<double>(bytes));
}

/// Whether the number is finite, also as a float32.
bool is_finite_float32(double number);

/// The words of a message for a number that is not finite as a float32: "NaN", "infinity" or
/// "1e+39, too large for float32".
std::string why_not_float32(double number);

/// Four characters for three bytes; the last four are filled with '='.
std::string base64(std::string_view bytes);

/// The bytes of what base64 writes; nothing of any other text.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace fovea
