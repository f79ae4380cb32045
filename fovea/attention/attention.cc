// SPDX-License-Identifier: Apache-2.0
// The way of every call: check, start, lower, run, and pull the gradients back.
#include "fovea/attention/attention.h"

#include <algorithm>
#include <type_traits>

#include "fovea/attention/bfloat16.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/fused/backward.h"
#include "fovea/attention/fused/forward.h"
#include "fovea/attention/fused/tile_cover.h"
#include "fovea/attention/linear/linear.h"
#include "fovea/base/check.h"
#include "fovea/base/profile.h"
#include "fovea/simd/isa.h"

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

namespace fovea::detail {

namespace {

// Limits of the tiles that a plan classifies one by one, and of their rows: it takes a few seconds.
constexpr index kMostLookedAt = index{1} << 27;
constexpr double kMostRows = 1 << 24;

// Counts the tiles of one call.
template <class T>
class TileCount {
 public:
  TileCount(const Attention<T>& attention, const AttentionInputs<T>& in, AttentionPlan& plan)
      : mask_(attention.mask), plan_(plan) {
    if (rows_of_tiles(attention, in) > kMostRows) fail_too_many();
  }

  void add(const Sequence& sequence, index head) {
    const index tiles = (sequence.queries + kLaneTile - 1) / kLaneTile *
                        ((sequence.keys + kRowBlock - 1) / kRowBlock);
    plan_.tiles += tiles;
    if (mask_.parts().empty()) {
      plan_.tiles_kept += tiles;
      plan_.kept_scores += static_cast<double>(sequence.queries * sequence.keys);
      return;
    }
    for (index query = 0; query < sequence.queries; query += kLaneTile) {
      looked_at_ +=
          1 + for_each_kept_tile_of(mask_, sequence, head, query,
                                    [&](const TileSite& site, TileKind kind) { add(site, kind); });
      if (looked_at_ > kMostLookedAt) fail_too_many();
    }
  }

 private:
  void add(const TileSite& site, TileKind kind) {
    ++plan_.tiles_kept;
    if (kind == TileKind::kSome) ++plan_.tiles_masked;
    plan_.kept_scores += static_cast<double>(site.queries * site.keys);
  }
  [[noreturn]] void fail_too_many() const {
    throw Error(ErrorCode::kShape,
                fmt::format("attention: a plan looks at up to {} tiles in {} rows of them; this "
                            "call, under the mask {}, has more",
                            kMostLookedAt, kMostRows, mask_.name()),
                "plan a call of one sequence and one head: each of the others adds its own");
  }

  const Mask& mask_;
  AttentionPlan& plan_;
  index looked_at_ = 0;
};

template <class T>
double fused_scratch_bytes(const Context& ctx, const LoweredCall<T>& call) {
  const ThreadScratch forward = forward_scratch(ctx, call), backward = backward_scratch(ctx, call);
  return std::max(forward.caller, backward.caller) +
         (ctx.threads() - 1) * std::max(forward.worker, backward.worker);
}

std::string kernel_name(Kernel kernel, bool is_float) {
  return fmt::format("{} {}", kernel == Kernel::kLinear ? "linear" : "fused",
                     is_float ? "float32" : "float64");
}

// The part of a plan that does not depend on the sizes.
template <class T>
AttentionPlan described(const Attention<T>& attention) {
  AttentionPlan plan;
  plan.isa = isa_name(current_isa());
  const bool turns = attention.rotary.pairs != RotaryPairs::kNone;
  plan.score = name_of(attention.score) + (turns ? " with rotary positions" : "");
  plan.mask = attention.mask.name();
  plan.bias = attention.bias.name();
  plan.values = attention.values.name();
  plan.observe = attention.observe.name();
  plan.norm = name_of(attention.norm) + (attention.sink.logits.empty() ? "" : " with a sink");
  plan.dropout = attention.dropout.probability;
  return plan;
}

}  // namespace

}  // namespace fovea::detail

namespace fovea {

template <class T>
AttentionPlan attention_plan(const Context& ctx, const Attention<T>& attention,
                             const AttentionInputs<T>& in) {
  detail::check_attention(attention, in);
  detail::start_call(attention);
  AttentionPlan plan = detail::described(attention);
  detail::TileCount<T> count(attention, in, plan);
  const auto call = detail::LoweredCall<T>::shape(attention, in);
  const auto& sequences = call.sequences();
  if (!attention.packed.empty()) plan.packed_sequences = static_cast<index>(sequences.size());
  for (const Sequence& sequence : sequences) {
    for (index head = 0; head < in.q.heads; ++head) count.add(sequence, head);
  }
  const detail::Kernel forward = call.forward_kernel({}), backward = call.backward_kernel();
  plan.kernel = detail::kernel_name(forward, std::is_same_v<T, float>);
  const auto D = static_cast<double>(call.in().q.width), Dv = static_cast<double>(in.v.width);
  const double passes = detail::sees_columns(attention.observe) ? 2 : 1;  // over the scores
  plan.forward_flops = plan.kept_scores * 2 * (passes * D + Dv);
  plan.backward_flops = plan.kept_scores * (6 * D + 4 * Dv);
  if (backward == detail::Kernel::kLinear) {
    const detail::LinearFlops flops = detail::linear_flops(ctx, call);
    plan.backward_flops = flops.backward;
    if (forward == detail::Kernel::kLinear) plan.forward_flops = flops.forward;
  }
  plan.scratch_bytes = call.made_bytes() + (forward == detail::Kernel::kLinear
                                                ? detail::linear_scratch_bytes(ctx, call)
                                                : detail::fused_scratch_bytes(ctx, call));
  return plan;
}

AttentionPlan attention_plan(const Context& ctx, const Attention<float>& attention,
                             const AttentionInputs<BFloat16>& in) {
  const AttentionInputs<float> wide = detail::float32_shapes(in);
  if (detail::reads_pairs(attention)) {
    AttentionPlan plan = attention_plan(ctx, attention, wide);
    plan.kernel = has_tiles() ? "fused bfloat16 on AMX" : "fused bfloat16";
    const auto call = detail::LoweredCall<BFloat16>::shape(attention, in);
    plan.scratch_bytes = call.made_bytes() + detail::fused_scratch_bytes(ctx, call);
    return plan;
  }
  detail::check_attention(attention, in);
  const AttentionInputs<float> converted{wide.q.without_gaps(), wide.k.without_gaps(),
                                         wide.v.without_gaps()};
  AttentionPlan plan = attention_plan(ctx, attention, converted);
  plan.kernel += ", converted from bfloat16";
  plan.scratch_bytes += detail::converted_bytes(in);
  return plan;
}

template AttentionPlan attention_plan(const Context&, const Attention<float>&,
                                      const AttentionInputs<float>&);
template AttentionPlan attention_plan(const Context&, const Attention<double>&,
                                      const AttentionInputs<double>&);

}  // namespace fovea
