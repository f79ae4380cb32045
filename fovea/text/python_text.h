// SPDX-License-Identifier: Apache-2.0
// White space and lower case as Python's str defines them. Scores of translations are defined by
// programs in Python, and differ where these differ. (All text here is valid UTF-8.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

/// str.isspace: Unicode's white space, and U+001C to U+001F.
bool is_python_space(char32_t c);

/// str.split(): the words between white space; none of them is empty.
std::vector<std::string_view> python_words(std::string_view text);

/// ' '.join(words).
std::string joined(const std::vector<std::string_view>& words);

/// str.rstrip(), and str.strip().
std::string_view strip_end(std::string_view text);
std::string_view strip_both(std::string_view text);

/// str.lower(): unlike lower_text, U+0130 becomes two characters, and a capital sigma behind a
/// letter and before none becomes a final sigma (Unicode 15, section 3.13, Final_Sigma).
std::string python_lower(std::string_view text);

/// The characters, one after another.
std::u32string characters_in(std::string_view text);

}  // namespace fovea
