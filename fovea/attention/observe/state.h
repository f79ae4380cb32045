// SPDX-License-Identifier: Apache-2.0
// Integers in the state of an observer, whose values are float or double.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "fovea/base/types.h"

namespace fovea::detail {

template <class T>
using StateInteger = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Bit casts, because a float is not exact beyond 2^24. Copy such values, do not compute with
/// them.
template <class T>
T state_from_index(index n) {
  return std::bit_cast<T>(static_cast<StateInteger<T>>(n));
}
template <class T>
index state_to_index(T value) {
  return std::bit_cast<StateInteger<T>>(value);
}

}  // namespace fovea::detail
