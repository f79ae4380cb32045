// SPDX-License-Identifier: Apache-2.0
// Letters used everywhere, in shapes and in code:
//   B batch, T query length, S key length, H query heads, G key/value heads,
//   D width of q and k per head, Dv of v, C model width, F feed-forward width, V vocabulary,
//   N rows (tokens of a batch laid one after another).
#pragma once

#include <cstdint>

namespace fovea {

/// Sizes, offsets and strides; signed, so that differences are safe. POSIX has a function index():
/// beside <cstring>, `using namespace fovea` needs the name in full, fovea::index.
using index = std::int64_t;

}  // namespace fovea
