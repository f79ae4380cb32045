// SPDX-License-Identifier: Apache-2.0
// Names that other tools use for options of fovea.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea::cli {

/// A hint that gives the option of a command, one of `options`, for the name `word` ("--max-iters")
/// of another tool. `value` is the value given with it, or "". Returns "" if the table has no such
/// name.
std::string hint_for_synonym(std::string_view command, std::span<const std::string> options,
                             std::string_view word, std::string_view value);

/// A hint for a word that is neither an option nor an argument of the command; "" if there is none.
std::string hint_for_word(std::string_view command, std::string_view word);

}  // namespace fovea::cli
