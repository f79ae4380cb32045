// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bfloat16.h"

namespace fovea::detail {

namespace {

double values_of(const View<const BFloat16>& view) {
  return static_cast<double>(view.batch) * static_cast<double>(view.length) *
         static_cast<double>(view.heads) * static_cast<double>(view.width);
}

}  // namespace

AttentionInputs<float> float32_shapes(const AttentionInputs<BFloat16>& in) {
  const auto shape = [](const View<const BFloat16>& v) {
    return View<const float>{reinterpret_cast<const float*>(v.data),
                             v.batch,
                             v.length,
                             v.heads,
                             v.width,
                             v.batch_stride,
                             v.length_stride,
                             v.head_stride};
  };
  return {shape(in.q), shape(in.k), shape(in.v)};
}

double converted_bytes(const AttentionInputs<BFloat16>& in) {
  // q, k, v, o, and their gradients.
  const double o =
      values_of(in.q) / static_cast<double>(in.q.width) * static_cast<double>(in.v.width);
  return 2 * sizeof(float) * (values_of(in.q) + values_of(in.k) + values_of(in.v) + o);
}

void forward_in_float32(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in,
                        const AttentionOutputs<BFloat16>& out) {
  Scratch scratch;
  Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  Converted o(out.o, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  forward_of_rows<float>(ctx, attention, wide, {o.view(), out.lse, out.lse_low, out.weights});
  o.round_into(ctx, out.o);
}

void backward_in_float32(const Context& ctx, const Attention<float>& attention,
                         const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                         const AttentionGradients<BFloat16>& gradients) {
  Scratch scratch;
  Converted q(ctx, in.q, scratch), k(ctx, in.k, scratch), v(ctx, in.v, scratch);
  Converted o(ctx, saved.o, scratch), d_o(ctx, saved.d_o, scratch);
  ConvertedGradient dq(gradients.dq, scratch), dk(gradients.dk, scratch), dv(gradients.dv, scratch);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  backward_of_rows<float>(ctx, attention, wide,
                          {o.view(), saved.lse, d_o.view(), saved.lse_low, saved.d_lse},
                          {dq.view(), dk.view(), dv.view()}, /*rounded_o=*/true);
  dq.store(ctx);
  dk.store(ctx);
  dv.store(ctx);
}

}  // namespace fovea::detail
