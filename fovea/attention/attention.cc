// SPDX-License-Identifier: Apache-2.0
// The way of every call: check, lower, run, and pull the gradients back.
#include "fovea/attention/attention.h"

#include "fovea/attention/checks.h"
#include "fovea/attention/fused/backward.h"
#include "fovea/attention/fused/forward.h"
#include "fovea/attention/linear/linear.h"

namespace fovea {

template <class T>
void attention_forward(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  const detail::LoweredCall<T> call(ctx, attention, in);
  detail::clear_uncovered(call.sequences(), out);
  if (call.forward_kernel(out) == detail::Kernel::kLinear) {
    detail::linear_forward(ctx, call, out);
  } else {
    detail::fused_forward(ctx, call, out);
  }
}

template <class T>
void attention_backward(const Context& ctx, const Attention<T>& attention,
                        const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                        const AttentionGradients<T>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  detail::LoweredCall<T> call(ctx, attention, in);
  const AttentionGradients<T> lowered = call.gradients(gradients);
  detail::clear_uncovered(call.sequences(), gradients);
  if (call.backward_kernel() == detail::Kernel::kLinear) {
    detail::linear_backward(ctx, call, saved.d_o, lowered);
  } else {
    detail::fused_backward(ctx, call, saved, lowered);
  }
  call.pull(ctx, gradients);
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void attention_forward(const Context&, const Attention<T>&, const AttentionInputs<T>&,  \
                                  const AttentionOutputs<T>&);                                     \
  template void attention_backward(const Context&, const Attention<T>&, const AttentionInputs<T>&, \
                                   const AttentionSaved<T>&, const AttentionGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea
