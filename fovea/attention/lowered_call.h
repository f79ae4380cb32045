// SPDX-License-Identifier: Apache-2.0
// A call as the kernels compute it. They know one score, the scaled dot product of rows; all others
// are lowered to it:
//
//   cosine, concat, rotary positions   rows of q and k are made, whose dot product is the score
//   l2, additive                       the first part of the bias makes the score
//
// Forward, backward and plan all start here.
#pragma once

#include <optional>
#include <vector>

#include "fovea/attention/call.h"
#include "fovea/attention/score/made_rows.h"

namespace fovea::detail {

/// Which code computes a call.
enum class Kernel {
  kFused,   ///< tile by tile, for everything (fused/)
  kLinear,  ///< by sums over keys, where the weights are the scores (linear/)
};

/// Are the weights the scores, and the keys that a query keeps a prefix? Then the sums over keys
/// that the linear kernel takes are all that there is to compute.
template <class T>
bool is_linear(const Attention<T>& attention);

/// A call on rows of T. Rows of bfloat16 are only those that reads_pairs() takes.
template <class T>
class LoweredCall {
 public:
  using W = Wide<T>;

  /// The call must be checked. `attention`, `in` and the memory of both must outlive this.
  LoweredCall(const Context& ctx, const Attention<W>& attention, const AttentionInputs<T>& in);
  /// A call for a plan: the made rows have shapes, but no memory.
  static LoweredCall shape(const Attention<W>& attention, const AttentionInputs<T>& in) {
    return {attention, in};
  }
  LoweredCall(const LoweredCall&) = delete;
  LoweredCall& operator=(const LoweredCall&) = delete;

  const Attention<W>& attention() const { return lowered_ ? *lowered_ : asked_; }
  const AttentionInputs<T>& in() const { return in_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }

  Kernel forward_kernel(const AttentionOutputs<T>& out) const;
  Kernel backward_kernel() const;

  /// The gradients that the backward of the lowered call writes, for those that are wanted.
  AttentionGradients<T> gradients(const AttentionGradients<T>& wanted);
  /// Turns them into the wanted ones.
  void pull(const Context& ctx, const AttentionGradients<T>& wanted) const;

  /// Bytes of the made rows and their gradients.
  double made_bytes() const;

 private:
  LoweredCall(const Attention<W>& attention, const AttentionInputs<T>& in);
  bool makes_rows() const { return RowMap<W>::needed(asked_.score, asked_.rotary); }
  QueryKeyRows<const T> asked_rows() const { return {asked_in_.q, asked_in_.k}; }

  const Attention<W>& asked_;
  const AttentionInputs<T>& asked_in_;
  std::vector<Sequence> sequences_;
  std::optional<Attention<W>> lowered_;  // unless it is what was asked for
  AttentionInputs<T> in_;
  std::optional<MadeRows<T>> rows_;
};

/// Whether the fused kernels compute the call from pairs of bfloat16. Otherwise it is computed in
/// float32 (bfloat16.h).
bool reads_pairs(const Attention<float>& attention);

}  // namespace fovea::detail
