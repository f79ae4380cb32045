// SPDX-License-Identifier: Apache-2.0
// Small layers of attention, and their rows.
#pragma once

#include <vector>

#include "fovea/nn/attention.h"
#include "tests/nn/support.h"

namespace fovea {

using Options = MultiHeadAttentionOptions;
inline constexpr index N = 7, C = 6;

inline Options options(index heads, index head_dim = 0) {
  Options o;
  o.width = C;
  o.heads = heads;
  o.head_dim = head_dim;
  return o;
}

inline PackedRows whole(Tape& tape) {
  static constexpr std::int32_t kWhole[] = {0, N};
  return lay_out_rows(tape, N, {kWhole, 2}, {});
}

template <class T>
Variable self(Tape& tape, const MultiHeadAttention& layer, const std::vector<T>& x) {
  return layer.forward(tape, tape.constant(Rows<const T>(x.data(), N, C)), whole(tape));
}

}  // namespace fovea
