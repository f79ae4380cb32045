// SPDX-License-Identifier: Apache-2.0
// Letters used everywhere, in shapes and in code:
//   B batch, T query length, S key length, H query heads, G key/value heads,
//   D width of q and k per head, Dv of v, C model width, F feed-forward width, V vocabulary,
//   N rows (all tokens of a batch, one after another).
#pragma once

#include <cstdint>

namespace fovea {

/// Sizes, offsets and strides; signed, so that differences are safe. POSIX has a function index():
/// after `using namespace fovea` in a file that includes <cstring>, write fovea::index in full.
using index = std::int64_t;

}  // namespace fovea
