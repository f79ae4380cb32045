// SPDX-License-Identifier: Apache-2.0
// Lines and numbers in the small files of /proc and /sys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace fovea {

/// The number that a text begins with; 0 if it begins with none.
std::int64_t leading_number(const std::string& text);

/// The number that a file holds; -1 if it holds a word ("max") or cannot be read.
std::int64_t file_number(const std::filesystem::path& path);

/// The text after `key` (and a colon, and spaces) on the first line that begins with it; empty if
/// there is no such line.
std::string line_value(const std::filesystem::path& path, std::string_view key);

}  // namespace fovea
