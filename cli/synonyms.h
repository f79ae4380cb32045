// SPDX-License-Identifier: Apache-2.0
// Options by the names that other tools have for them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fovea::cli {

/// What `word` ("--max-iters") means among the `options` of a command, as a hint; `value` is what
/// was given with it, or "". "" if the table has no such name.
std::string hint_for_synonym(std::string_view command, std::span<const std::string> options,
                             std::string_view word, std::string_view value);

}  // namespace fovea::cli
