// SPDX-License-Identifier: Apache-2.0
// A kernel, or a table of kernels, for float and for double.
#pragma once

#include <type_traits>

namespace fovea {

/// Holds both; of<T>() is the one for T. simd-inl.h shows what it is for.
template <class Float, class Double>
struct PerPrecision {
  Float f32;
  Double f64;

  template <class T>
  constexpr auto of() const {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return f64;
    }
  }
};
template <class Float, class Double>
PerPrecision(Float, Double) -> PerPrecision<Float, Double>;

}  // namespace fovea
