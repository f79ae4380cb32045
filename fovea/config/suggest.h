// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea {

/// The candidate that is nearest to `word`, by the number of insertions, deletions, replacements
/// and swaps of neighbours; the first one if several are equally near. Dashes equal underscores,
/// and case is ignored. "" if none is within 1, or a third of the letters.
std::string closest(std::string_view word, std::span<const std::string> candidates);

/// "did you mean X?", or "" if none is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace fovea
