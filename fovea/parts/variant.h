// SPDX-License-Identifier: Apache-2.0
// Which attention a call computes, in plain values: every choice that is neither a tensor, nor a
// mask, nor a size. And the numbers of its tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "fovea/attention/relative/shaw.h"
#include "fovea/attention/score/score.h"
#include "fovea/base/fields.h"
#include "fovea/base/view.h"

namespace fovea {

enum class AttentionScoreKind { kDot, kCosine, kL2, kAdditive, kConcat };
inline constexpr EnumName<AttentionScoreKind> kAttentionScoreKindNames[] = {
    {AttentionScoreKind::kDot, "dot"},
    {AttentionScoreKind::kCosine, "cosine"},
    {AttentionScoreKind::kL2, "l2"},
    {AttentionScoreKind::kAdditive, "additive"},
    {AttentionScoreKind::kConcat, "concat"}};
inline std::span<const EnumName<AttentionScoreKind>> enum_names(AttentionScoreKind) {
  return kAttentionScoreKindNames;
}

enum class AttentionNormKind { kSoftmax, kSigmoid, kNone };
inline constexpr EnumName<AttentionNormKind> kAttentionNormKindNames[] = {
    {AttentionNormKind::kSoftmax, "softmax"},
    {AttentionNormKind::kSigmoid, "sigmoid"},
    {AttentionNormKind::kNone, "none"}};
inline std::span<const EnumName<AttentionNormKind>> enum_names(AttentionNormKind) {
  return kAttentionNormKindNames;
}

inline constexpr EnumName<RotaryPairs> kRotaryPairsNames[] = {
    {RotaryPairs::kNone, "none"},
    {RotaryPairs::kHalves, "halves"},
    {RotaryPairs::kInterleaved, "interleaved"}};
inline std::span<const EnumName<RotaryPairs>> enum_names(RotaryPairs) { return kRotaryPairsNames; }

inline constexpr EnumName<ShawOrder> kShawOrderNames[] = {{ShawOrder::kQueryMinusKey, "i-j"},
                                                          {ShawOrder::kKeyMinusQuery, "j-i"}};
inline std::span<const EnumName<ShawOrder>> enum_names(ShawOrder) { return kShawOrderNames; }

/// The defaults are those of the operator: a scaled dot product under softmax, and no part.
struct AttentionVariant {
  AttentionScoreKind score = AttentionScoreKind::kDot;
  std::optional<double> scale = {};  ///< of the scores; none: the default of the score
  double log_n_scale = 0;            ///< scores x log(keys of the row) / log of this; 0: no
  double softcap = 0;                ///< a score s becomes C tanh(s / C); 0: no cap
  bool t5_causal = false;            ///< all buckets of t5 are for keys before the query
  index t5_max_distance = 128;       ///< distances from here on share the last bucket
  ShawOrder order = ShawOrder::kQueryMinusKey;
  AttentionNormKind norm = AttentionNormKind::kSoftmax;
  RotaryPairs rotary = RotaryPairs::kNone;
  double rotary_base = 10000;
  index rotary_first = 0;                  ///< position of key 0
  Vec<const double> rotary_divisors = {};  ///< of the angles, for each pair of columns; or none
  double rotary_amplitude = 1;
};

/// The most rows of the table of parts (part_table.h).
inline constexpr std::size_t kMostAttentionParts = 16;
/// The number of the row of a tensor, such as "slopes". Throws Error(kOptionValue) for a name that
/// no row has.
std::size_t part_number(std::string_view tensor);

}  // namespace fovea
