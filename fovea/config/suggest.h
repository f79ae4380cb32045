// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea {

/// The candidate that was probably meant by `word`: fewest insertions, deletions, replacements and
/// swaps of neighbours (at most 1, or a third of the letters), the first of equals. Dashes and
/// underscores are the same, and so are capitals and small letters. "" if none is near.
std::string closest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean X?", or "" if none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace fovea
