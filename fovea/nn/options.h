// SPDX-License-Identifier: Apache-2.0
// The choices of the layers, with their names for users.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/base/fields.h"
#include "fovea/kernel/elementwise.h"
#include "fovea/kernel/norm.h"

namespace fovea {

struct AttentionPart;

/// The position encoding of a model. Beside those named here, each part of attention that is one
/// (parts/part_table.h): enum_from_name<PositionKind>("alibi").
enum class PositionKind : std::uint8_t {
  kLearned,     ///< a learned table, added to the embeddings
  kSinusoidal,  ///< fixed sines and cosines, added to the embeddings
  kRotary,      ///< queries and keys turned by their positions (Su et al. 2021)
  kNone,        ///< none; a causal mask still gives some information about order
  kFirstPart,   ///< this, and the number of its row: a part
};

/// Whether the encoding is a row for each position, joined to the embeddings.
constexpr bool adds_position_rows(PositionKind kind) {
  return kind == PositionKind::kLearned || kind == PositionKind::kSinusoidal;
}

/// How position embeddings are joined to token embeddings.
enum class PositionJoin { kAdd, kConcatenate };

/// Where the sine and the cosine of frequency i stand among the d columns of a row (Vaswani et al.
/// 2017, section 3.5: kInterleaved); one order is a fixed permutation of another.
enum class SinusoidOrder {
  kInterleaved,  ///< sin 0, cos 0, sin 1, cos 1, ...
  kSinCos,       ///< all sines, then all cosines
  kCosSin,       ///< all cosines, then all sines
};

enum class NormKind { kLayer, kRms };

/// The activation of a feed-forward network or a convolution. Those from kReglu on are of
/// feed-forward networks alone: the activation of one product multiplies another product, its gate
/// (Shazeer 2020, "GLU Variants Improve Transformer").
enum class LayerActivation : std::uint8_t {
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kReglu,
  kGeglu,
  kSwiglu,
  kGegluTanh,
};

constexpr bool is_gated(LayerActivation activation) {
  return activation >= LayerActivation::kReglu;
}

/// The function that it applies to one number.
constexpr Activation function_of(LayerActivation activation) {
  switch (activation) {
    case LayerActivation::kGelu:
    case LayerActivation::kGeglu:
      return Activation::kGelu;
    case LayerActivation::kGeluTanh:
    case LayerActivation::kGegluTanh:
      return Activation::kGeluTanh;
    case LayerActivation::kSilu:
    case LayerActivation::kSwiglu:
      return Activation::kSilu;
    case LayerActivation::kRelu:
    case LayerActivation::kReglu:
      break;
  }
  return Activation::kRelu;
}

/// Where a block normalises: kPre before attention and feed-forward, with one more norm at the end
/// of the model (Xiong et al. 2020); kPost after each residual sum (Vaswani et al. 2017, 3.1);
/// kSandwich as kPre, and what is added has a norm of its own (Ding et al. 2021, "CogView", 2.4;
/// Gemma Team 2024, "Gemma 2", table 1).
enum class NormPosition { kPre, kPost, kSandwich };

/// The parts from the newest to the oldest, as help lists them.
std::span<const EnumName<PositionKind>> enum_names(PositionKind);

/// The row of the part that the position is, or nullptr.
const AttentionPart* part_of(PositionKind position);
/// The tensor of that part, or "".
std::string_view part_tensor(PositionKind position);
/// Whether the position learns this tensor of a part.
bool learns_tensor(PositionKind position, std::string_view tensor);

inline constexpr EnumName<PositionJoin> kPositionJoinNames[] = {
    {PositionJoin::kAdd, "add"}, {PositionJoin::kConcatenate, "concat"}};
inline std::span<const EnumName<PositionJoin>> enum_names(PositionJoin) {
  return kPositionJoinNames;
}

inline constexpr EnumName<SinusoidOrder> kSinusoidOrderNames[] = {
    {SinusoidOrder::kInterleaved, "interleaved"},
    {SinusoidOrder::kSinCos, "sin-cos"},
    {SinusoidOrder::kCosSin, "cos-sin"}};
inline std::span<const EnumName<SinusoidOrder>> enum_names(SinusoidOrder) {
  return kSinusoidOrderNames;
}

inline constexpr EnumName<NormKind> kNormKindNames[] = {{NormKind::kLayer, "layer"},
                                                        {NormKind::kRms, "rms"}};
inline std::span<const EnumName<NormKind>> enum_names(NormKind) { return kNormKindNames; }

inline constexpr EnumName<NormPosition> kNormPositionNames[] = {
    {NormPosition::kPre, "pre"},
    {NormPosition::kPost, "post"},
    {NormPosition::kSandwich, "sandwich"}};
inline std::span<const EnumName<NormPosition>> enum_names(NormPosition) {
  return kNormPositionNames;
}

inline constexpr EnumName<LayerNormVariant> kLayerNormVariantNames[] = {
    {LayerNormVariant::kStandard, "standard"}, {LayerNormVariant::kUnbiased, "unbiased"}};
inline std::span<const EnumName<LayerNormVariant>> enum_names(LayerNormVariant) {
  return kLayerNormVariantNames;
}

inline constexpr EnumName<LayerActivation> kLayerActivationNames[] = {
    {LayerActivation::kRelu, "relu"},          {LayerActivation::kGelu, "gelu"},
    {LayerActivation::kGeluTanh, "gelu-tanh"}, {LayerActivation::kSilu, "silu"},
    {LayerActivation::kReglu, "reglu"},        {LayerActivation::kGeglu, "geglu"},
    {LayerActivation::kSwiglu, "swiglu"},      {LayerActivation::kGegluTanh, "geglu-tanh"}};
inline std::span<const EnumName<LayerActivation>> enum_names(LayerActivation) {
  return kLayerActivationNames;
}

}  // namespace fovea
