// SPDX-License-Identifier: Apache-2.0
// Small questions about strings.
#pragma once

#include <string_view>

namespace fovea {

/// Whether `word` is one of the words that `separator` separates in `list`: "cpu" in "cpu,cpuacct".
bool has_word(std::string_view list, char separator, std::string_view word);

/// Whether the text consists of the digits 0 to 9, of at least one.
bool is_all_digits(std::string_view text);

}  // namespace fovea
