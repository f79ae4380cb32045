// SPDX-License-Identifier: Apache-2.0
// What tests of convolutions share.
#pragma once

#include "fovea/nn/convolution.h"
#include "tests/nn/support.h"

namespace fovea {

using Offsets = std::vector<std::int32_t>;

template <class T = float>
Rows<const T> as_rows(const std::vector<T>& values, index columns) {
  return {values.data(), static_cast<index>(values.size()) / columns, columns};
}

inline PackedRows sequences(const Offsets& offsets) {
  PackedRows rows;
  rows.offsets = offsets;
  return rows;
}

// The outputs of a layer for packed sequences.
template <class Layer>
std::vector<float> apply(const Layer& layer, const std::vector<float>& x, index in,
                         const Offsets& offsets, int threads = 2) {
  return output_of(
      [&](Tape& t) { return layer.forward(t, t.constant(as_rows(x, in)), sequences(offsets)); },
      threads);
}

inline std::vector<float> rows_of(const std::vector<float>& x, index columns, index begin,
                                  index end) {
  return {x.begin() + begin * columns, x.begin() + end * columns};
}

}  // namespace fovea
