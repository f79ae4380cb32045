// SPDX-License-Identifier: Apache-2.0
// The way of every call: check, start, lower, run, and pull the gradients back.
#include "fovea/attention/attention.h"

#include <algorithm>

#include "fovea/attention/bfloat16.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/fused/backward.h"
#include "fovea/attention/fused/forward.h"
#include "fovea/attention/linear/linear.h"
#include "fovea/base/profile.h"

namespace fovea {

namespace {

// The share of the computed tiles' scores that the mask keeps; 1 for the linear kernel, which has
// no tiles, and for a mask without ranges of keys, whose scores are not counted one by one.
template <class T>
double kept_part(const Attention<T>& attention, const AttentionInputs<T>& in,
                 const AttentionPlan& plan) {
  const auto& parts = attention.mask.parts();
  const bool are_ranges = std::all_of(parts.begin(), parts.end(),
                                      [](const auto& part) { return part->keeps_key_range(); });
  const auto call = detail::LoweredCall<T>::shape(attention, in);
  if (parts.empty() || !are_ranges || plan.kept_scores == 0 ||
      call.backward_kernel() == detail::Kernel::kLinear) {
    return 1;
  }
  index kept = 0;
  for (const Sequence& sequence : call.sequences()) {
    for (index head = 0; head < in.q.heads; ++head) {
      for (index i = 0; i < sequence.queries; ++i) {
        kept += attention.mask.kept_keys(sequence, head, i);
      }
    }
  }
  return static_cast<double>(kept) / plan.kept_scores;
}

// The flops of the scores that are kept; q, k, v, o, and in the backward their gradients, of
// `value_bytes` bytes a value.
template <class T>
Work work_of(const Context& ctx, const Attention<T>& attention, const AttentionInputs<T>& in,
             bool backward, std::size_t value_bytes = sizeof(T)) {
  if (ctx.profile() == nullptr) return {};
  const AttentionPlan plan = attention_plan(ctx, attention, in);
  const auto values = [](const View<const T>& view, index width) {
    return static_cast<double>(view.batch * view.length * view.heads * width);
  };
  const auto& [q, k, v] = in;
  const double once =
      values(q, q.width + v.width) + values(k, k.width) + values(v, v.width);  // o is as wide as v
  return {.what = backward ? "attention backward" : "attention",
          .shape = {in.q.batch * in.q.length, in.q.heads, in.q.width},
          .flops = (backward ? plan.backward_flops : plan.forward_flops) *
                   kept_part(attention, in, plan),
          .bytes = (backward ? 2 : 1) * once * static_cast<double>(value_bytes)};
}

Work work_of(const Context& ctx, const Attention<float>& attention,
             const AttentionInputs<BFloat16>& in, bool backward) {
  return work_of(ctx, attention, detail::float32_shapes(in), backward, sizeof(BFloat16));
}

}  // namespace

template <class T>
void detail::forward_of_rows(const Context& ctx, const Attention<Wide<T>>& attention,
                             const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  const detail::LoweredCall<T> call(ctx, attention, in);
  detail::clear_uncovered(call.sequences(), out);
  if constexpr (!kReadsPairs<T>) {
    if (call.forward_kernel(out) == detail::Kernel::kLinear) {
      return detail::linear_forward(ctx, call, out);
    }
  }
  detail::fused_forward(ctx, call, out);
}

template <class T>
void detail::backward_of_rows(const Context& ctx, const Attention<Wide<T>>& attention,
                              const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                              const AttentionGradients<T>& gradients, bool rounded_o) {
  detail::LoweredCall<T> call(ctx, attention, in);
  const AttentionGradients<T> lowered = call.gradients(gradients);
  detail::clear_uncovered(call.sequences(), gradients);
  if constexpr (kReadsPairs<T>) {
    detail::fused_backward(ctx, call, saved, lowered, rounded_o);
  } else if (call.backward_kernel() == detail::Kernel::kLinear) {
    detail::linear_backward(ctx, call, saved.d_o, lowered);
  } else {
    detail::fused_backward(ctx, call, saved, lowered, rounded_o);
  }
  call.pull(ctx, gradients);
}

namespace {

template <class T>
void forward(const Context& ctx, const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
             const AttentionOutputs<T>& out) {
  detail::check_attention(attention, in);
  detail::check_outputs(attention, in, out);
  detail::check_overlap(attention, in, out);
  detail::start_call(attention);
  const ProfileScope scope(ctx, work_of(ctx, attention, in, /*backward=*/false));
  if constexpr (detail::kReadsPairs<T>) {
    if (!detail::reads_pairs(attention)) {
      return detail::forward_in_float32(ctx, attention, in, out);
    }
  }
  detail::forward_of_rows(ctx, attention, in, out);
}

template <class T>
void backward(const Context& ctx, const Attention<Wide<T>>& attention, const AttentionInputs<T>& in,
              const AttentionSaved<T>& saved, const AttentionGradients<T>& gradients) {
  detail::check_attention(attention, in);
  detail::check_gradients(attention, in, saved, gradients);
  detail::check_overlap(attention, in, saved, gradients);
  detail::start_call(attention);
  const ProfileScope scope(ctx, work_of(ctx, attention, in, /*backward=*/true));
  if constexpr (detail::kReadsPairs<T>) {
    if (!detail::reads_pairs(attention)) {
      return detail::backward_in_float32(ctx, attention, in, saved, gradients);
    }
  }
  detail::backward_of_rows(ctx, attention, in, saved, gradients,
                           /*rounded_o=*/detail::kReadsPairs<T>);
}

}  // namespace

template <class T>
void attention_forward(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const AttentionOutputs<T>& out) {
  forward(ctx, attention, in, out);
}

template <class T>
void attention_backward(const Context& ctx, const Attention<T>& attention,
                        const AttentionInputs<T>& in, const AttentionSaved<T>& saved,
                        const AttentionGradients<T>& gradients) {
  backward(ctx, attention, in, saved, gradients);
}

void attention_forward(const Context& ctx, const Attention<float>& attention,
                       const AttentionInputs<BFloat16>& in, const AttentionOutputs<BFloat16>& out) {
  forward(ctx, attention, in, out);
}

void attention_backward(const Context& ctx, const Attention<float>& attention,
                        const AttentionInputs<BFloat16>& in, const AttentionSaved<BFloat16>& saved,
                        const AttentionGradients<BFloat16>& gradients) {
  backward(ctx, attention, in, saved, gradients);
}

bool multiplies_bfloat16(const Attention<float>& attention) {
  return detail::reads_pairs(attention);
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void attention_forward(const Context&, const Attention<T>&, const AttentionInputs<T>&,  \
                                  const AttentionOutputs<T>&);                                     \
  template void attention_backward(const Context&, const Attention<T>&, const AttentionInputs<T>&, \
                                   const AttentionSaved<T>&, const AttentionGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE
template void detail::forward_of_rows(const Context&, const Attention<float>&,
                                      const AttentionInputs<float>&,
                                      const AttentionOutputs<float>&);
template void detail::backward_of_rows(const Context&, const Attention<float>&,
                                       const AttentionInputs<float>&, const AttentionSaved<float>&,
                                       const AttentionGradients<float>&, bool);

}  // namespace fovea
