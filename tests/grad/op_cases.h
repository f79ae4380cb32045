// SPDX-License-Identifier: Apache-2.0
// Every differentiable op as a case of the gradient checker. A new op adds its rows here.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <ostream>

#include "fovea/attention/mask/band.h"
#include "fovea/grad/gradcheck.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "tests/grad/op_references.h"

namespace fovea {

using Inputs = std::span<const Variable>;

inline void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.name; }

inline constexpr std::int32_t kIds[] = {2, 0, 4, 2, 2, 1};
inline constexpr std::int32_t kPlaces[] = {0, 1, 2, 0, 1, 2};
inline constexpr std::int32_t kTargets[] = {3, -1, 0, 4, 3, 1};
inline constexpr std::int32_t kOffsets[] = {0, 2, 2, 6};
inline constexpr std::uint64_t kSamples[] = {7, 8, 1ull << 40};

inline Vec<const std::int32_t> ids() { return {kIds, 6}; }
inline Targets targets() { return {{kTargets, 6}}; }
inline PackedRows three_sequences(Tape& tape) {
  return lay_out_rows(tape, 6, {kOffsets, 4}, {kSamples, 3});
}
inline const Mask& causal() {
  static const Mask mask = mask::Causal();
  return mask;
}
inline constexpr DropoutOptions kDropout{0.4, {11, 12, 13}};

template <Activation f>
Variable linear_case(Tape& tape, Inputs in) {
  return linear(tape, in[0], in[1], in[2], f);
}

template <Activation f>
Variable activation_case(Tape& tape, Inputs in) {
  return activation(tape, f, in[0]);
}

inline Variable attention_case(Tape& tape, const AttentionOperands& operands, index heads,
                               index kv_heads, const DropoutOptions& dropout = {}) {
  return attention(tape, operands,
                   {.heads = heads, .kv_heads = kv_heads, .mask = &causal(), .dropout = dropout});
}

// q, k and v as columns of one projection: 2 heads of 3, values of 2 for one shared head.
inline Variable fused_attention_case(Tape& tape, Inputs in) {
  const auto parts = split_columns(tape, in[0], std::array<index, 3>{6, 3, 2});
  const PackedRows rows = three_sequences(tape);
  return attention_case(tape, {parts[0], parts[1], parts[2], rows, rows}, 2, 1, kDropout);
}

inline constexpr GradientCase kOpCases[] = {
    {"linear", {{6, 5}, {4, 5}, {1, 4}}, linear_case<Activation::kNone>, linear_reference},
    {"linear_without_bias",
     {{6, 5}, {4, 5}},
     [](Tape& t, Inputs in) { return linear(t, in[0], in[1]); }},
    {"linear_relu", {{6, 5}, {4, 5}, {1, 4}}, linear_case<Activation::kRelu>},
    {"linear_gelu", {{6, 5}, {4, 5}, {1, 4}}, linear_case<Activation::kGelu>},
    {"linear_silu", {{20, 3}, {17, 3}, {1, 17}}, linear_case<Activation::kSilu>},
    {"linear_with_itself", {{5, 5}}, [](Tape& t, Inputs in) { return linear(t, in[0], in[0]); }},
    {"embedding",
     {{5, 3}, {3, 3}},
     [](Tape& t, Inputs in) {
       return embedding(t, {in[0], ids()}, {in[1], {kPlaces, 6}});
     },
     embedding_reference},
    {"embedding_of_one_table",
     {{5, 3}},
     [](Tape& t, Inputs in) {
       return embedding(t, {in[0], ids()}, {in[0], {kPlaces, 6}});
     }},
    {"layer_norm",
     {{6, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) { return layer_norm(t, in[0], in[1], in[2]); },
     layer_norm_reference},
    {"layer_norm_unbiased",
     {{6, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) {
       return layer_norm(t, in[0], in[1], in[2], {LayerNormVariant::kUnbiased, 1e-6});
     }},
    {"layer_norm_without_gain",
     {{6, 5}},
     [](Tape& t, Inputs in) { return layer_norm(t, in[0], {}, {}); }},
    {"rms_norm",
     {{6, 5}, {1, 5}},
     [](Tape& t, Inputs in) { return rms_norm(t, in[0], in[1]); },
     rms_norm_reference},
    {"relu", {{6, 5}}, activation_case<Activation::kRelu>},
    {"gelu", {{6, 5}}, activation_case<Activation::kGelu>, gelu_reference, -3, 3},
    {"gelu_tanh", {{6, 5}}, activation_case<Activation::kGeluTanh>, nullptr, -3, 3},
    {"silu", {{6, 5}}, activation_case<Activation::kSilu>, nullptr, -3, 3},
    {"tanh", {{6, 5}}, activation_case<Activation::kTanh>, nullptr, -3, 3},
    {"add", {{6, 5}, {6, 5}}, [](Tape& t, Inputs in) { return add(t, in[0], in[1]); }},
    {"add_to_itself", {{6, 5}}, [](Tape& t, Inputs in) { return add(t, in[0], in[0]); }},
    {"multiply", {{6, 5}, {6, 5}}, [](Tape& t, Inputs in) { return multiply(t, in[0], in[1]); }},
    {"square", {{6, 5}}, [](Tape& t, Inputs in) { return multiply(t, in[0], in[0]); }},
    {"scale", {{6, 5}}, [](Tape& t, Inputs in) { return scale(t, in[0], -2.5); }},
    {"dropout",
     {{6, 5}},
     [](Tape& t, Inputs in) { return dropout(t, in[0], kDropout, three_sequences(t)); }},
    {"residual", {{6, 5}, {6, 5}}, [](Tape& t, Inputs in) { return residual(t, in[0], in[1]); }},
    {"residual_with_dropout",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return residual(t, in[0], in[1], kDropout, three_sequences(t)); }},
    {"columns_swapped",
     {{6, 5}},
     [](Tape& t, Inputs in) {
       const auto parts = split_columns(t, in[0], std::array<index, 2>{2, 3});
       return concat_columns(t, std::array{parts[1], parts[0]});
     },
     columns_swapped_reference},
    {"columns_dropped_and_used_whole",
     {{6, 5}},
     [](Tape& t, Inputs in) {
       const Variable x = scale(t, in[0], 1.5);
       const auto parts = split_columns(t, x, std::array<index, 3>{2, 1, 2});
       const Variable y = multiply(t, parts[0], parts[2]);
       return concat_columns(t, std::array{y, x});
     }},
    {"attention",
     {{6, 6}, {6, 6}, {6, 4}},
     [](Tape& t, Inputs in) {
       return attention_case(t, {in[0], in[1], in[2], {}, {}}, 2, 2);
     },
     attention_reference_case},
    {"attention_of_columns_packed_grouped_dropped", {{6, 11}}, fused_attention_case},
    {"attention_with_itself",
     {{6, 6}},
     [](Tape& t, Inputs in) {
       const PackedRows rows = three_sequences(t);
       return attention_case(t, {in[0], in[0], in[0], rows, rows}, 3, 3);
     }},
    {"attention_with_slopes",
     {{6, 4}, {6, 4}, {6, 4}, {1, 2}},
     [](Tape& t, Inputs in) {
       return attention_case(t, {in[0], in[1], in[2], {}, {}, in[3]}, 2, 2);
     }},
    {"softmax",
     {{6, 5}},
     [](Tape& t, Inputs in) { return softmax(t, in[0]); },
     softmax_reference,
     -3,
     3},
    {"cross_entropy",
     {{6, 5}},
     [](Tape& t, Inputs in) { return cross_entropy(t, in[0], targets(), 0.25); },
     cross_entropy_reference,
     -3,
     3},
    {"cross_entropy_scaled_afterwards",
     {{6, 5}},
     [](Tape& t, Inputs in) { return scale(t, cross_entropy(t, in[0], targets()), -2); }},
    {"linear_cross_entropy",
     {{6, 4}, {5, 4}, {1, 5}},
     [](Tape& t, Inputs in) {
       return linear_cross_entropy(t, in[0], in[1], in[2], targets(), 0.25);
     },
     linear_cross_entropy_reference},
    {"sum", {{6, 5}}, [](Tape& t, Inputs in) { return sum(t, in[0]); }},
    {"mean", {{6, 5}}, [](Tape& t, Inputs in) { return mean(t, in[0]); }},
};

}  // namespace fovea
