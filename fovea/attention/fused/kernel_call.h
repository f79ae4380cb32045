// SPDX-License-Identifier: Apache-2.0
// Constants and types of the fused kernels and of the functions that start them.
#pragma once

#include <cstdint>

#include "fovea/attention/lowered_call.h"

namespace fovea::detail {

/// One call, as every tile sees it.
template <class T>
struct KernelCall {
  const Attention<Wide<T>>& attention;
  const AttentionInputs<T>& in;
  Wide<T> scale;
  DropoutRule dropout;
  const Observe<Wide<T>>* observe;  ///< those of `attention`, and more of the forward

  KernelCall(const Attention<Wide<T>>& a, const AttentionInputs<T>& i)
      : attention(a),
        in(i),
        scale(static_cast<Wide<T>>(scale_of(a.score, i.q.width))),
        dropout(dropout_rule(a.dropout)),
        observe(&a.observe) {}

  bool has_bias() const { return !attention.bias.empty(); }
  /// Whether a part of the bias reads rows of q and k.
  bool bias_needs_rows() const { return needs_rows(attention.bias); }
  /// Parts that change scores or values.
  bool has_parts() const { return has_bias() || !attention.values.empty(); }
  /// Whether any of them reads rows; those of values read dO.
  bool needs_rows_of_parts() const { return bias_needs_rows() || !attention.values.empty(); }
  bool has_product() const { return !makes_score(attention.bias); }
  const Norm& norm() const { return attention.norm; }
  RowNorm<Wide<T>> row_norm(index head) const { return row_norm_of(attention, head); }
};

/// Whether products read pairs of bfloat16 (simd/pairs-inl.h).
template <class T>
inline constexpr bool kReadsPairs = kOperandValues<T> == 2;

/// The operands that hold `values` values.
template <class T>
constexpr index operands_of(index values) {
  return (values + kOperandValues<T> - 1) / kOperandValues<T>;
}

/// Whether the pairs of such rows can be read where they are.
inline bool are_whole_pairs(const Rows<const BFloat16>& rows) {
  return reinterpret_cast<std::uintptr_t>(rows.data) % sizeof(BFloat16Pair) == 0 &&
         rows.stride % 2 == 0 && rows.columns % 2 == 0;
}

/// Keys of a chunk: dK and dV are finished inside one, dQ is the sum of all in ascending order. A
/// function of the length alone, so that bits depend on nothing else.
inline index key_chunk(index keys) { return keys <= 2048 ? 256 : 512; }

}  // namespace fovea::detail
