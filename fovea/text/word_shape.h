// SPDX-License-Identifier: Apache-2.0
// The shape of a word, whatever its letters are: many names, numbers and addresses differ by it.
#pragma once

#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

/// How many shapes there are.
inline constexpr index kWordShapes = 45;

/// The shape of a word in UTF-8. Models keep its numbers, so they never change:
///
///     9 letters + 3 digits + others, where
///     letters   0 none, 1 all small, 2 the first is a capital, 3 all are (two or more), 4 others;
///               letters of scripts without capitals are small
///     digits    0 none, 1 some, 2 all characters but . , : / - +
///     others    0 none, 1 some other character, 2 it begins with @, #, http or www.
std::int32_t word_shape(std::string_view word);

}  // namespace fovea
