// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "fovea/attention/attention.h"
#include "fovea/attention/checks.h"
#include "fovea/attention/fused/backward.h"
#include "fovea/attention/fused/columns.h"
#include "fovea/attention/fused/kept_tiles.h"
#include "fovea/attention/fused/kernel_call.h"
#include "fovea/attention/fused/observed_tile.h"
#include "fovea/attention/fused/query_tiles.h"
#include "fovea/attention/fused/scratch_sizes.h"
#include "fovea/attention/linear/linear.h"
#include "fovea/attention/score/made_rows.h"
#include "fovea/attention/score/pair_score.h"
#include "fovea/attention/sequences.h"
#include "fovea/base/check.h"
#include "fovea/simd/isa.h"

namespace fovea {

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

// Bytes that one thread takes in the forward for the tiles that run together.
template <class T>
double forward_scratch(const Context& ctx, const Attention<T>& attention,
                       const AttentionInputs<T>& in, const std::vector<Sequence>& sequences) {
  const QueryTiles tiles(sequences, in.q.heads, tile_flops(sequences, in), ctx.threads());
  const LaneCounts lanes = lane_counts<T>();
  index most = 0;
  for (index item = 0; item < tiles.items(); ++item) {
    tiles.for_each_run(item, [&](const QueryRun& run) {
      const index queries = run.query_end - run.query_begin;
      const index stride =
          (std::min(queries, kLaneTile) + lanes.vector - 1) / lanes.vector * lanes.vector;
      const ForwardRoom room(in.q.width, in.v.width, stride);
      const auto observed = [&](index rows) {
        return observer_values(attention.observe, run.sequence, rows);
      };
      const auto [first, last] = key_range(attention.mask, run);
      const index together = query_tiles_together<T>(in.q.width, in.v.width, last - first,
                                                     observed(kLaneTile), lanes.panel);
      const index count = std::min((queries + kLaneTile - 1) / kLaneTile, together);
      const index near = stride > lanes.panel ? room.near : 0;
      most = std::max(most, near + room.s + count * (room.own() + observed(stride)));
    });
  }
  return static_cast<double>(most) * sizeof(T);
}

template <class T>
double scratch_bytes(const Context& ctx, const Attention<T>& attention,
                     const AttentionInputs<T>& in, const std::vector<Sequence>& sequences) {
  const double forward = forward_scratch(ctx, attention, in, sequences);
  const auto [caller, worker] = backward_scratch(ctx, attention, in);
  return std::max(forward + row_sums_bytes(attention, in), caller) +
         (ctx.threads() - 1) * std::max(forward, worker);
}

}  // namespace

template <class T>
AttentionPlan attention_plan(const Context& ctx, const Attention<T>& attention,
                             const AttentionInputs<T>& in) {
  check_attention(attention, in);
  if (has_pair_score(attention)) {
    AttentionPlan plan = attention_plan(ctx, with_pair_score(attention, in.q.width), in);
    plan.score = name_of(attention.score) + plan.score.substr(name_of<T>(score::Dot()).size());
    plan.bias = attention.bias.name();
    return plan;
  }
  AttentionPlan plan;
  plan.kernel = std::is_same_v<T, float> ? "fused float32" : "fused float64";
  plan.isa = isa_name(current_isa());
  const bool turns = attention.rotary.pairs != RotaryPairs::kNone;
  plan.score = name_of(attention.score) + (turns ? " with rotary positions" : "");
  plan.mask = attention.mask.name();
  plan.bias = attention.bias.name();
  plan.values = attention.values.name();
  plan.observe = attention.observe.name();
  plan.norm = name_of(attention.norm) + (attention.sink.logits.empty() ? "" : " with a sink");
  plan.dropout = attention.dropout.probability;
  TileCount<T> count(attention, in, plan);
  const std::vector<Sequence> sequences = make_sequences(attention, in);
  if (!attention.packed.empty()) plan.packed_sequences = static_cast<index>(sequences.size());
  for (const Sequence& sequence : sequences) {
    for (index head = 0; head < in.q.heads; ++head) {
      count.add(sequence, head);
    }
  }
  AttentionInputs<T> made = in;
  made.q.width = made.k.width = RowMap<T>::width(attention, in.q.width);
  const auto D = static_cast<double>(made.q.width), Dv = static_cast<double>(in.v.width);
  const double passes = sees_columns(attention.observe) ? 2 : 1;  // over the scores
  plan.forward_flops = plan.kept_scores * 2 * (passes * D + Dv);
  plan.backward_flops = plan.kept_scores * (6 * D + 4 * Dv);
  plan.scratch_bytes = scratch_bytes(ctx, attention, made, sequences);
  if (is_linear(attention)) {  // then the backward is linear, whether observed or not
    const LinearFlops flops = linear_flops(ctx, attention, made);
    plan.backward_flops = flops.backward;
    if (is_linear(attention, AttentionOutputs<T>())) {
      plan.kernel = std::is_same_v<T, float> ? "linear float32" : "linear float64";
      plan.forward_flops = flops.forward;
      plan.scratch_bytes = linear_scratch_bytes(ctx, attention, made);
    }
  }
  plan.scratch_bytes += MappedCall<T>::bytes(attention, in);
  return plan;
}

template AttentionPlan attention_plan(const Context&, const Attention<float>&,
                                      const AttentionInputs<float>&);
template AttentionPlan attention_plan(const Context&, const Attention<double>&,
                                      const AttentionInputs<double>&);

}  // namespace fovea
