// SPDX-License-Identifier: Apache-2.0
// The kernels of winograd.cc: its rows and pairs on the current instruction set. Nothing outside it
// needs this header.
#pragma once

#include <array>

#include "fovea/kernel/activation.h"
#include "fovea/kernel/shapes.h"

namespace fovea {

/// The two rows of a pair, from its four products.
template <class T>
struct WinogradPair {
  std::array<T*, 4> m;
  const T* bias = nullptr;
  index columns = 0;
  Store store = Store::kWrite;
  T *y0, *y1;          ///< y1 is null in a pair of one row
  T *slope0, *slope1;  ///< null if f' is not wanted
};

template <class T>
struct WinogradKernels {
  /// d0 - d2, d1 + d2, d2 - d1, d1 - d3 of rows of C values.
  void (*differences)(const std::array<const T*, 4>& d, index C, const std::array<T*, 4>& v);
  /// dy0, dy0 + dy1, dy0 - dy1, dy1.
  void (*result_gradients)(const T* dy0, const T* dy1, index C, const std::array<T*, 4>& m);
  /// u1 and u2 of one row of the taps, [3, C].
  void (*weights)(const T* taps, index C, T* u1, T* u2);
  /// The gradient of one row of the taps from those of the u.
  void (*gradient_of_taps)(const std::array<T*, 4>& du, index C, Store store, T* dw);
  void (*finish)(Activation f, const WinogradPair<T>& pair);
};

}  // namespace fovea
