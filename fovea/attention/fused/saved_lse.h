// SPDX-License-Identifier: Apache-2.0
// The log-sum-exp that the backward reads.
#pragma once

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/base/memory.h"

namespace fovea::detail {

/// The saved results of the forward, with lse in two parts where one is not exact enough. Without
/// lse_low, the rounding error of lse becomes the relative error of a weight. If it may be more
/// than 6e-5 in some row, the scores are computed again for the whole call, one more product of q
/// and k, and such rows get both parts from them.
template <class T>
class SavedLse {
 public:
  /// Shapes have been checked.
  SavedLse(const Context& ctx, const LoweredCall<T>& call, const AttentionSaved<T>& saved);
  SavedLse(const SavedLse&) = delete;
  SavedLse& operator=(const SavedLse&) = delete;

  const AttentionSaved<T>& saved() const { return saved_; }

 private:
  void compute(const Context& ctx, const LoweredCall<T>& call);

  AttentionSaved<T> saved_;
  AlignedBytes rows_;  // lse and lse_low [B, H, T]; empty unless they are needed
};

}  // namespace fovea::detail
