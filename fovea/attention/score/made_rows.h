// SPDX-License-Identifier: Apache-2.0
// A call that transforms rows of q and k (row_map.h), as a call with a plain dot product. It owns
// the transformed rows: memory linear in their number.
#pragma once

#include <vector>

#include "fovea/attention/score/row_map.h"
#include "fovea/base/memory.h"

namespace fovea {

template <class T>
class MappedCall {
 public:
  /// The call must be checked; `attention` and the memory of `in` must outlive this.
  MappedCall(const Context& ctx, const Attention<T>& attention, const AttentionInputs<T>& in);

  const Attention<T>& attention() const { return dot_; }
  const AttentionInputs<T>& in() const { return made_; }

  /// The gradients that the backward of the dot product writes.
  AttentionGradients<T> gradients(const AttentionGradients<T>& wanted);
  /// Turns them into the gradients of q, of k, and of the score's weights.
  void pull(const Context& ctx, const AttentionGradients<T>& wanted) const;

  /// Bytes of all transformed rows and gradients of a backward.
  static double bytes(const Attention<T>& attention, const AttentionInputs<T>& in);

 private:
  View<T> room(const View<const T>& of);
  template <class F>
  void for_each_query(const Context& ctx, F&& f) const;
  template <class F>
  void for_each_key(const Context& ctx, F&& f) const;
  void pull_weights(const Context& ctx, const score::Concat<T>& concat) const;

  const Attention<T>& asked_;
  const AttentionInputs<T>& rows_;
  const std::vector<Sequence> sequences_;
  const RowMap<T> map_;
  std::vector<AlignedBytes> memory_;
  Attention<T> dot_;
  AttentionInputs<T> made_;
  View<T> dq_, dk_;
};

}  // namespace fovea
