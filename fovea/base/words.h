// SPDX-License-Identifier: Apache-2.0
// Helpers for strings.
#pragma once

#include <string_view>

namespace fovea {

/// Whether `word` is an entry of `list`, whose entries are separated by `separator`: "cpu" in
/// "cpu,cpuacct".
bool has_word(std::string_view list, char separator, std::string_view word);

/// Whether the text is one or more digits 0 to 9.
bool is_all_digits(std::string_view text);

}  // namespace fovea
