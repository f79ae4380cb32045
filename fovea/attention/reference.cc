// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/reference.h"

#include "fovea/attention/bfloat16.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/reference_loops.h"

namespace fovea {

template <class T>
void attention_reference_forward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                 const AttentionOutputs<T>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  detail::reference_forward(attention, in, out, detail::Factors::kExact);
}

void attention_reference_forward(const Attention<float>& attention,
                                 const AttentionInputs<BFloat16>& in,
                                 const AttentionOutputs<BFloat16>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  const Context ctx(1);
  Scratch scratch;
  detail::Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  detail::Converted o(out.o, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  detail::reference_forward<float>(attention, wide, {o.view(), out.lse, out.lse_low, out.weights},
                                   detail::Factors::kBFloat16);
  o.round_into(ctx, out.o);
}

template <class T>
void attention_reference_backward(const Attention<T>& attention, const AttentionInputs<T>& in,
                                  const AttentionSaved<T>& saved,
                                  const AttentionGradients<T>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  detail::reference_backward(attention, in, saved, gradients, detail::Factors::kExact);
}

void attention_reference_backward(const Attention<float>& attention,
                                  const AttentionInputs<BFloat16>& in,
                                  const AttentionSaved<BFloat16>& saved,
                                  const AttentionGradients<BFloat16>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  const Context ctx(1);
  Scratch scratch;
  detail::Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  detail::Converted o(ctx, saved.o, scratch), d_o(ctx, saved.d_o, scratch);
  detail::ConvertedGradient dq(gradients.dq, scratch), dk(gradients.dk, scratch),
      dv(gradients.dv, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  detail::reference_backward<float>(attention, wide,
                                    {o.view(), saved.lse, d_o.view(), saved.lse_low, saved.d_lse},
                                    {dq.view(), dk.view(), dv.view()}, detail::Factors::kBFloat16);
  dq.store(ctx);
  dk.store(ctx);
  dv.store(ctx);
}

template void attention_reference_forward(const Attention<float>&, const AttentionInputs<float>&,
                                          const AttentionOutputs<float>&);
template void attention_reference_forward(const Attention<double>&, const AttentionInputs<double>&,
                                          const AttentionOutputs<double>&);
template void attention_reference_backward(const Attention<float>&, const AttentionInputs<float>&,
                                           const AttentionSaved<float>&,
                                           const AttentionGradients<float>&);
template void attention_reference_backward(const Attention<double>&, const AttentionInputs<double>&,
                                           const AttentionSaved<double>&,
                                           const AttentionGradients<double>&);

}  // namespace fovea
