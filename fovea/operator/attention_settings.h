// SPDX-License-Identifier: Apache-2.0
// The settings of the attention operator, besides its tensors, as one list of fields.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/base/fields.h"
#include "fovea/base/types.h"
#include "fovea/parts/variant.h"

namespace fovea {

enum class CausalKind { kNone, kBottomRight, kTopLeft };
inline constexpr EnumName<CausalKind> kCausalKindNames[] = {
    {CausalKind::kNone, "none"},
    {CausalKind::kBottomRight, "bottom-right"},
    {CausalKind::kTopLeft, "top-left"}};
inline std::span<const EnumName<CausalKind>> enum_names(CausalKind) { return kCausalKindNames; }

/// The type of values that a call computes in; auto: float64 if q is, else float32.
enum class AttentionPrecision { kAuto, kFloat32, kFloat64, kBFloat16 };
inline constexpr EnumName<AttentionPrecision> kAttentionPrecisionNames[] = {
    {AttentionPrecision::kAuto, "auto"},
    {AttentionPrecision::kFloat32, "f32"},
    {AttentionPrecision::kFloat64, "f64"},
    {AttentionPrecision::kBFloat16, "bf16"}};
inline std::span<const EnumName<AttentionPrecision>> enum_names(AttentionPrecision) {
  return kAttentionPrecisionNames;
}
inline constexpr EnumName<AttentionPrecision> kAttentionPrecisionAliases[] = {
    {AttentionPrecision::kFloat32, "float32"},
    {AttentionPrecision::kFloat64, "float64"},
    {AttentionPrecision::kBFloat16, "bfloat16"}};
inline std::span<const EnumName<AttentionPrecision>> enum_aliases(AttentionPrecision) {
  return kAttentionPrecisionAliases;
}

/// The names that --observe accepts: "entropy, max, topk=K, ..."
std::string observed_names();

struct AttentionSettings {
  AttentionScoreKind score = AttentionScoreKind::kDot;
  std::string scale = "auto";
  double log_n_scale = 0;
  double softcap = 0;
  CausalKind causal = CausalKind::kNone;
  std::string window = {};
  index dilation = 1;
  index strided = 1;
  bool t5_bidirectional = false;
  bool t5_causal = false;
  index t5_max_distance = 128;
  ShawOrder order = ShawOrder::kQueryMinusKey;
  AttentionNormKind norm = AttentionNormKind::kSoftmax;
  RotaryPairs rotary = RotaryPairs::kNone;
  double dropout = 0;
  std::uint64_t seed = 0;
  std::string observe = {};
  bool backward = false;
  AttentionPrecision precision = AttentionPrecision::kAuto;
  bool reference = false;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    const auto visit_mask = under("Mask", visit), visit_position = under("Positions", visit),
               visit_dropout = under("Dropout", visit);
    visit("score", score, "how a query and a key become a score");
    visit("scale", scale, "factor of the scores; auto: 1 / sqrt(D) for --score dot and l2, else 1",
          {.shown = "X|auto"});
    visit("log_n_scale", log_n_scale,
          "factor log(n) / log(N) of the scores, n the keys that a query keeps; 0: none");
    visit("softcap", softcap, "a score s becomes C tanh(s / C), C this cap; 0: no cap");
    visit_mask(
        "causal", causal,
        "keep keys up to the query, j <= p; without a value: bottom-right, the last query sees "
        "all keys",
        {.bare = "bottom-right"});
    visit_mask("window", window,
               "sliding window: keep p - L <= j <= p + R; -1: no limit on that side",
               {.shown = "L,R"});
    visit_mask("dilation", dilation, "keep every N-th key, j = p + m N; --window then limits m");
    visit_mask("strided", strided,
               "keep near keys and every N-th, |j - p| < N or where N divides j - p");
    visit_position("t5_bidirectional", t5_bidirectional,
                   "tensor t5: half of its buckets are for keys after the query (default)");
    visit_position("t5_causal", t5_causal,
                   "tensor t5: all of its buckets are for keys before the query");
    visit_position("t5_max_distance", t5_max_distance,
                   "tensor t5: distances from here on share the last bucket");
    visit_position("order", order,
                   "tensors shaw_k and shaw_v: sign of the distance that numbers their rows");
    visit("norm", norm, "how scores become weights");
    visit_position("rotary", rotary, "rotate pairs of columns of q and k by their positions");
    visit_dropout("dropout", dropout, "probability of dropping a weight");
    visit_dropout("seed", seed, "seed of --dropout");
    visit("observe", observe, "statistics of the weights to write, separated by commas",
          {.names = observed_names});
    visit("backward", backward, "also compute the gradients; IN holds the gradient of o as do");
    visit("precision", precision,
          "of computation and of OUT; auto: f64 if q is, else f32; bf16: of q, k, v, o and "
          "gradients");
    visit("reference", reference,
          "compute by the definition: plain loops in f64; with bf16 in f32, rounded where the "
          "kernel rounds");
  }
};

/// The choices among them that are no masks and no observers. Throws kOptionValue as parse_scale().
AttentionVariant variant_of(const AttentionSettings& settings);

/// The scale; nothing for "auto". Throws kOptionValue unless it is a finite number.
std::optional<double> parse_scale(std::string_view text);

/// Reads "L,R"; "" means no limit on both sides. Throws kOptionValue for any other text, and for
/// values below kOpen.
Reach parse_window(std::string_view text);

/// One entry of --observe, with its value if it has one ("topk=8").
struct ObserveWish {
  std::string name, value;
};

/// Reads "a,b=c". Throws kOptionValue for a name that occurs twice.
std::vector<ObserveWish> parse_observe(std::string_view text);

/// Throws kOptionValue for a rate below 1, a cap below 0 and a probability outside [0, 1); kUsage
/// for two directions at once.
void check_settings(const AttentionSettings& settings);

}  // namespace fovea
