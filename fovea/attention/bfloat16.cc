// SPDX-License-Identifier: Apache-2.0
#include "fovea/attention/bfloat16.h"

#include <variant>
#include <vector>

#include "fovea/attention/fused/columns.h"
#include "fovea/attention/lowered_call.h"
#include "fovea/simd/isa.h"

namespace fovea::detail {

namespace {

double values_of(const View<const BFloat16>& view) {
  return static_cast<double>(view.batch) * static_cast<double>(view.length) *
         static_cast<double>(view.heads) * static_cast<double>(view.width);
}

// A tensor of bfloat16 as float32, without gaps.
class Converted {
 public:
  /// Without data: room for results.
  Converted(const View<const BFloat16>& from, bool read)
      : values_(static_cast<std::size_t>(from.batch * from.length * from.heads * from.width)),
        view_(View<float>::contiguous(values_.data(), from.batch, from.length, from.heads,
                                      from.width)) {
    if (read)
      for_each_row([&](index b, index l, index h, float* row) {
        const BFloat16* const bits = from.row(b, l, h);
        for (index c = 0; c < view_.width; ++c) row[c] = to_float(bits[c]);
      });
  }

  View<float> view() { return view_; }

  void round_into(const View<BFloat16>& to) const {
    for_each_row([&](index b, index l, index h, const float* row) {
      BFloat16* const bits = to.row(b, l, h);
      for (index c = 0; c < view_.width; ++c) bits[c] = to_bfloat16(row[c]);
    });
  }

 private:
  template <class F>
  void for_each_row(F&& f) const {
    for (index b = 0; b < view_.batch; ++b) {
      for (index l = 0; l < view_.length; ++l) {
        for (index h = 0; h < view_.heads; ++h) f(b, l, h, view_.row(b, l, h));
      }
    }
  }

  std::vector<float> values_;
  View<float> view_;
};

Converted read(const View<const BFloat16>& view) { return {view, true}; }

// Room for the gradient of a tensor, where it is wanted.
class ConvertedGradient {
 public:
  explicit ConvertedGradient(const View<BFloat16>& wanted)
      : wanted_(wanted), room_(wanted.empty() ? View<BFloat16>{} : wanted, false) {}

  View<float> view() { return wanted_.empty() ? View<float>{} : room_.view(); }
  void store() const {
    if (!wanted_.empty()) room_.round_into(wanted_);
  }

 private:
  View<BFloat16> wanted_;
  Converted room_;
};

}  // namespace

bool backward_reads_pairs(const Attention<float>& attention) {
  return has_bfloat16_products() && std::holds_alternative<score::Dot>(attention.score) &&
         attention.rotary.pairs == RotaryPairs::kNone && !is_linear(attention);
}

bool forward_reads_pairs(const Attention<float>& attention) {
  return backward_reads_pairs(attention) && !sees_columns(attention.observe);
}

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
  Converted q = read(in.q), k = read(in.k), v = read(in.v), o(out.o, false);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  attention_forward(ctx, attention, wide, {o.view(), out.lse, out.lse_low, out.weights});
  o.round_into(out.o);
}

void backward_in_float32(const Context& ctx, const Attention<float>& attention,
                         const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                         const AttentionGradients<BFloat16>& gradients) {
  Converted q = read(in.q), k = read(in.k), v = read(in.v), o = read(saved.o),
            d_o = read(saved.d_o);
  ConvertedGradient dq(gradients.dq), dk(gradients.dk), dv(gradients.dv);
  const AttentionInputs<float> wide{q.view(), k.view(), v.view()};
  attention_backward(ctx, attention, wide,
                     {o.view(), saved.lse, d_o.view(), saved.lse_low, saved.d_lse},
                     {dq.view(), dk.view(), dv.view()});
  dq.store();
  dk.store();
  dv.store();
}

}  // namespace fovea::detail
