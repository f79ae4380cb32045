// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

/// A token as it can be seen: spaces at its ends and ends of lines have signs; control characters,
/// those that turn the direction of writing or take no room, and other spaces at the ends are named
/// ("[U+202E]", "[U+3000]"), also joiners and variation selectors with nothing before them; a
/// combining mark with nothing before it stands on a dotted circle. Bytes that are not UTF-8 are
/// U+FFFD, and an empty token is U+2205.
std::string visible(std::string_view token);

/// Whether all characters are spaces, of any width.
bool is_all_spaces(std::string_view token);

/// Columns of a terminal that a token or label gets among others.
inline constexpr index kLongestToken = 40;

/// visible(), of at most kLongestToken columns: the end of a longer one is cut.
std::string short_token(std::string_view token);

}  // namespace fovea
