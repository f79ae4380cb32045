// SPDX-License-Identifier: Apache-2.0
// The fused backward: one pass of five products, by chunks of keys (Dao et al. 2022, algorithm
// 4).
#pragma once

#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/scratch_sizes.h"
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

/// Computes the gradients of every row of the sequences, and those of the parts. `rounded_o`:
/// whether saved.o was rounded to bfloat16.
template <class T>
void fused_backward(const Context& ctx, const LoweredCall<T>& call, const AttentionSaved<T>& saved,
                    const AttentionGradients<T>& gradients, bool rounded_o);

/// Bytes of scratch that it takes, if all gradients are asked for.
template <class T>
ThreadScratch backward_scratch(const Context& ctx, const LoweredCall<T>& call);

}  // namespace fovea::detail
