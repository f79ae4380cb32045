// SPDX-License-Identifier: Apache-2.0
// AdamW whose moments take 8 bits a value, in blocks of 256 with a scale each (after Dettmers et
// al. 2022, "8-bit Optimizers via Block-wise Quantization", section 2).
//
// A block is stored as its largest absolute value, the scale, and a small floating-point number for
// each value beside it: 3 bits of fraction, and as many exponents as the codes have room for. What
// lies between two codes is rounded to one of them at random, so that the mean of what is stored is
// the moment itself: rounded to the nearest, a moment that changes by a thousandth in each update
// would never leave its code. The random bits depend on the number of the update and the place
// alone.
#pragma once

#include <cstdint>
#include <span>

#include "fovea/base/context.h"
#include "fovea/base/view.h"
#include "fovea/kernel/adamw.h"

namespace fovea {

/// Values that share a scale.
inline constexpr index kMomentBlock = 256;
constexpr index moment_blocks(index values) { return (values + kMomentBlock - 1) / kMomentBlock; }

/// The error of a stored moment: below this part of the moment itself ...
inline constexpr double kMomentError = 1.0 / 8;
/// ... or of its block's scale, for moments below this part of it: m (7 bits and a sign), and v (8
/// bits), which is then stored as so much, since values are divided by its root.
inline constexpr double kSmallestM = 1.25 / (1 << 16);
inline constexpr double kSmallestV = 1.25 / (std::int64_t{1} << 32);

/// The codes of n values, and the scales of their moment_blocks(n).
struct Moments8 {
  Vec<std::uint8_t> codes = {};
  Vec<float> scales = {};
};

/// One parameter with its gradient and moments. `number` is its number in the model, which random
/// bits depend on.
struct AdamW8Slot {
  Vec<float> value = {};
  Vec<const float> gradient = {};
  Moments8 m = {}, v = {};
  double decay = 1;
  std::uint32_t number = 0;
};

/// adamw() of moments that are read from their codes and stored as such again. A moment of which
/// all codes and scales are 0 is 0. Throws Error as adamw().
void adamw8(const Context& ctx, std::span<const AdamW8Slot> slots, const AdamWStep& step);

/// The moments of a slot, for tests: m and v [n].
void read_moments8(const AdamW8Slot& slot, Vec<float> m, Vec<float> v);

}  // namespace fovea
