// SPDX-License-Identifier: Apache-2.0
// Every differentiable op as a case of the gradient checker, with its formula. A new op adds its
// rows here.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <string_view>

#include "fovea/attention/mask/band.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/ops/common.h"
#include "fovea/reference/gradcheck.h"
#include "tests/grad/attention_reference.h"
#include "tests/grad/convolution_reference.h"
#include "tests/grad/dual.h"
#include "tests/grad/op_references.h"
#include "tests/grad/recurrent_reference.h"

namespace fovea {

using Inputs = std::span<const Variable>;

/// A formula in double, and in plain float32 with slopes.
struct OpFormula {
  GradientCase::Reference exact = nullptr;
  void (*plain)(Matrices<Dual<float>> in, Rows<Dual<float>> y) = nullptr;
};
template <class F>
inline constexpr OpFormula by{F::template run<double>, F::template run<Dual<float>>};

struct OpCase {
  std::string_view name;
  GradientCase::Size inputs[6] = {};
  GradientCase::Function function = nullptr;
  OpFormula formula;
  double low = -1, high = 1;

  GradientCase check() const {
    GradientCase c{name, {}, function, formula.exact, low, high};
    std::copy(std::begin(inputs), std::end(inputs), c.inputs);
    return c;
  }
};

inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

inline Vec<const std::int32_t> ids() { return {kIds, 6}; }
inline Targets targets() { return {{kTargets, 6}}; }
inline PackedRows three_sequences(Tape& tape) {
  return lay_out_rows(tape, 6, {kOffsets, 4}, {kSamples, 3});
}
inline const Mask& causal() {
  static const Mask mask = mask::Causal();
  return mask;
}
inline constexpr DropoutOptions kDropout{kDropoutRate, kDropoutKey};

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

// in: as RecurrentFormula has it.
template <RecurrentKind kind, std::size_t per_direction, std::size_t directions = 1>
Variable recurrent_case(Tape& tape, Inputs in) {
  std::array<RecurrentWeights, directions> weights;
  for (std::size_t d = 0; d < directions; ++d) {
    const Inputs own = in.subspan(1 + d * per_direction, per_direction);
    weights[d] = {own[0], own[1]};
    if (per_direction > 2) weights[d].bias = own[2];
    if (per_direction > 3) weights[d].bias_hn = own[3];
  }
  return recurrent(tape, in[0], weights, three_sequences(tape), {.kind = kind});
}

template <index width, Padding padding, index dilation, Activation f = Activation::kNone>
struct ConvolutionCase {
  static Variable run(Tape& tape, Inputs in) {
    return convolution(tape, in[0], in[1], in.size() > 2 ? in[2] : Variable(),
                       three_sequences(tape),
                       {.width = width, .padding = padding, .dilation = dilation, .activation = f});
  }
  static constexpr OpFormula formula() {
    return by<ConvolutionFormula<width, padding, dilation, f>>;
  }
};
using SameConvolution = ConvolutionCase<3, Padding::kSame, 1, Activation::kGelu>;
using CausalConvolution = ConvolutionCase<3, Padding::kCausal, 1, Activation::kRelu>;
using EvenConvolution = ConvolutionCase<4, Padding::kSame, 1>;
using DilatedConvolution = ConvolutionCase<3, Padding::kCausal, 2, Activation::kTanh>;

inline constexpr OpCase kOpCases[] = {
    {"linear",
     {{6, 5}, {4, 5}, {1, 4}},
     linear_case<Activation::kNone>,
     by<LinearFormula<Activation::kNone>>},
    {"linear_without_bias",
     {{6, 5}, {4, 5}},
     [](Tape& t, Inputs in) { return linear(t, in[0], in[1]); },
     by<LinearFormula<Activation::kNone>>},
    {"linear_relu",
     {{6, 5}, {4, 5}, {1, 4}},
     linear_case<Activation::kRelu>,
     by<LinearFormula<Activation::kRelu>>},
    {"linear_gelu",
     {{6, 5}, {4, 5}, {1, 4}},
     linear_case<Activation::kGelu>,
     by<LinearFormula<Activation::kGelu>>},
    {"linear_silu",
     {{20, 3}, {17, 3}, {1, 17}},
     linear_case<Activation::kSilu>,
     by<LinearFormula<Activation::kSilu>>},
    {"linear_with_itself",
     {{5, 5}},
     [](Tape& t, Inputs in) { return linear(t, in[0], in[0]); },
     by<OfItself<LinearFormula<Activation::kNone>, 2>>},
    {"convolution", {{6, 5}, {4, 15}, {1, 4}}, SameConvolution::run, SameConvolution::formula()},
    {"convolution_causal_of_a_parameter",
     {{6, 5}, {12, 5}, {1, 4}},
     CausalConvolution::run,
     CausalConvolution::formula()},
    {"convolution_of_even_width_without_bias",
     {{6, 3}, {2, 12}},
     EvenConvolution::run,
     EvenConvolution::formula()},
    {"convolution_dilated",
     {{6, 3}, {17, 9}, {1, 17}},
     DilatedConvolution::run,
     DilatedConvolution::formula()},
    {"glu", {{6, 10}}, [](Tape& t, Inputs in) { return glu(t, in[0]); }, by<GluFormula>, -3, 3},
    {"max_over_time",
     {{6, 5}},
     [](Tape& t, Inputs in) { return max_over_time(t, in[0], three_sequences(t)); },
     by<MaxOverTimeFormula>},
    {"whole_windows",
     {{6, 5}},
     [](Tape& t, Inputs in) { return whole_windows(t, in[0], 3, three_sequences(t)); },
     by<WholeWindowsFormula>},
    {"embedding",
     {{5, 3}, {3, 3}},
     [](Tape& t, Inputs in) {
       return embedding(t, {in[0], ids()}, {in[1], {kPlaces, 6}});
     },
     by<EmbeddingFormula>},
    {"embedding_of_one_table",
     {{5, 3}},
     [](Tape& t, Inputs in) {
       return embedding(t, {in[0], ids()}, {in[0], {kPlaces, 6}});
     },
     by<OfItself<EmbeddingFormula, 2>>},
    {"embedding_bag_sum",
     {{5, 3}},
     [](Tape& t, Inputs in) {
       return embedding_bag(t, {in[0], ids(), {kOffsets, 4}});
     },
     by<EmbeddingBagFormula<BagMode::kSum>>},
    {"embedding_bag_mean",
     {{5, 3}},
     [](Tape& t, Inputs in) {
       return embedding_bag(t, {in[0], ids(), {kOffsets, 4}, BagMode::kMean});
     },
     by<EmbeddingBagFormula<BagMode::kMean>>},
    {"embedding_bag_root_mean",
     {{5, 3}},
     [](Tape& t, Inputs in) {
       return embedding_bag(t, {in[0], ids(), {kOffsets, 4}, BagMode::kRootMean});
     },
     by<EmbeddingBagFormula<BagMode::kRootMean>>},
    {"layer_norm",
     {{6, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) { return layer_norm(t, in[0], in[1], in[2]); },
     by<LayerNormFormula<LayerNormVariant::kStandard>>},
    {"layer_norm_unbiased",
     {{6, 5}, {1, 5}, {1, 5}},
     [](Tape& t, Inputs in) {
       return layer_norm(t, in[0], in[1], in[2], {LayerNormVariant::kUnbiased, 1e-6});
     },
     by<LayerNormFormula<LayerNormVariant::kUnbiased>>},
    {"layer_norm_without_gain",
     {{6, 5}},
     [](Tape& t, Inputs in) { return layer_norm(t, in[0], {}, {}); },
     by<LayerNormFormula<LayerNormVariant::kStandard>>},
    {"rms_norm",
     {{6, 5}, {1, 5}},
     [](Tape& t, Inputs in) { return rms_norm(t, in[0], in[1]); },
     by<RmsNormFormula>},
    {"rms_norm_heads",
     {{6, 6}, {1, 2}},
     [](Tape& t, Inputs in) { return rms_norm_heads(t, in[0], in[1], 3); },
     by<RmsNormHeadsFormula<3>>},
    {"relu",
     {{6, 5}},
     activation_case<Activation::kRelu>,
     by<ActivationFormula<Activation::kRelu>>},
    {"gelu",
     {{6, 5}},
     activation_case<Activation::kGelu>,
     by<ActivationFormula<Activation::kGelu>>,
     -3,
     3},
    {"gelu_tanh",
     {{6, 5}},
     activation_case<Activation::kGeluTanh>,
     by<ActivationFormula<Activation::kGeluTanh>>,
     -3,
     3},
    {"silu",
     {{6, 5}},
     activation_case<Activation::kSilu>,
     by<ActivationFormula<Activation::kSilu>>,
     -3,
     3},
    {"tanh",
     {{6, 5}},
     activation_case<Activation::kTanh>,
     by<ActivationFormula<Activation::kTanh>>,
     -3,
     3},
    {"add",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return add(t, in[0], in[1]); },
     by<AddFormula>},
    {"add_to_itself",
     {{6, 5}},
     [](Tape& t, Inputs in) { return add(t, in[0], in[0]); },
     by<OfItself<AddFormula, 2>>},
    {"multiply",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return multiply(t, in[0], in[1]); },
     by<MultiplyFormula>},
    {"square",
     {{6, 5}},
     [](Tape& t, Inputs in) { return multiply(t, in[0], in[0]); },
     by<OfItself<MultiplyFormula, 2>>},
    {"softcap",
     {{6, 5}},
     [](Tape& t, Inputs in) { return softcap(t, in[0], SoftcapFormula::kCap); },
     by<SoftcapFormula>},
    {"scale", {{6, 5}}, [](Tape& t, Inputs in) { return scale(t, in[0], -2.5); }, by<ScaleFormula>},
    {"dropout",
     {{6, 5}},
     [](Tape& t, Inputs in) { return dropout(t, in[0], kDropout, three_sequences(t)); },
     by<DropoutFormula>},
    {"residual",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return residual(t, in[0], in[1]); },
     by<AddFormula>},
    {"residual_with_dropout",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return residual(t, in[0], in[1], kDropout, three_sequences(t)); },
     by<ResidualDropoutFormula>},
    {"columns_swapped",
     {{6, 5}},
     [](Tape& t, Inputs in) {
       const auto parts = split_columns(t, in[0], std::array<index, 2>{2, 3});
       return concat_columns(t, std::array{parts[1], parts[0]});
     },
     by<ColumnsSwappedFormula>},
    {"columns_dropped_and_used_whole",
     {{6, 5}},
     [](Tape& t, Inputs in) {
       const Variable x = scale(t, in[0], 1.5);
       const auto parts = split_columns(t, x, std::array<index, 3>{2, 1, 2});
       const Variable y = multiply(t, parts[0], parts[2]);
       return concat_columns(t, std::array{y, x});
     },
     by<ColumnsUsedTwiceFormula>},
    {"first_rows_replaced",
     {{6, 5}, {6, 5}},
     [](Tape& t, Inputs in) { return replace_first_rows(t, in[0], in[1], three_sequences(t)); },
     by<FirstRowsFormula>},
    {"first_rows_replaced_by_themselves",
     {{6, 5}},
     [](Tape& t, Inputs in) {
       const Variable x = scale(t, in[0], 1.5);
       return add(t, x, replace_first_rows(t, x, x, three_sequences(t)));
     },
     by<ScaleByThreeFormula>},
    {"rows_stacked",
     {{4, 5}, {2, 5}},
     [](Tape& t, Inputs in) {
       return stack_rows(t, std::array{in[1], in[0]});
     },
     by<RowsStackedFormula>},
    {"pair_features",
     {{6, 5}},
     [](Tape& t, Inputs in) { return pair_features(t, in[0]); },
     by<PairFeaturesFormula>},
    {"unit_rows",
     {{6, 5}},
     [](Tape& t, Inputs in) { return unit_rows(t, in[0]); },
     by<UnitRowsFormula<5>>},
    {"unit_rows_of_the_first_columns",
     {{6, 5}},
     [](Tape& t, Inputs in) { return unit_rows(t, in[0], 3); },
     by<UnitRowsFormula<3>>},
    {"cosent_loss",
     {{6, 1}},
     [](Tape& t, Inputs in) {
       return cosent_loss(t, in[0], {kOrder, 6}, 0.5, 0.25);
     },
     by<CosentFormula>},
    {"attention",
     {{6, 6}, {6, 6}, {6, 4}},
     [](Tape& t, Inputs in) {
       return attention_case(t, {in[0], in[1], in[2], {}, {}}, 2, 2);
     },
     by<AttentionFormula<2, AttentionForm::Sequences::kOne>>},
    {"attention_of_columns_packed_grouped_dropped",
     {{6, 11}},
     fused_attention_case,
     by<FusedAttentionFormula>},
    {"attention_with_"
     "itself",
     {{6, 6}},
     [](Tape& t, Inputs in) {
       const PackedRows rows = three_sequences(t);
       return attention_case(t, {in[0], in[0], in[0], rows, rows}, 3, 3);
     },
     by<OfItself<AttentionFormula<3, AttentionForm::Sequences::kThree>, 3>>},
    {"attention_with_slopes",
     {{6, 4}, {6, 4}, {6, 4}, {1, 2}},
     [](Tape& t, Inputs in) {
       AttentionOperands operands{in[0], in[1], in[2], {}, {}};
       operands.parts[part_number("slopes")] = in[3];
       return attention_case(t, operands, 2, 2);
     },
     by<AttentionFormula<2, AttentionForm::Sequences::kOne>>},
    {"rnn",
     {{6, 3}, {4, 3}, {4, 4}, {1, 4}},
     recurrent_case<RecurrentKind::kRnn, 3>,
     by<RecurrentFormula<RecurrentKind::kRnn, 3>>},
    {"rnn_both_ways",
     {{6, 3}, {2, 3}, {2, 2}, {2, 3}, {2, 2}},
     recurrent_case<RecurrentKind::kRnn, 2, 2>,
     by<RecurrentFormula<RecurrentKind::kRnn, 2, 2>>},
    {"gru",
     {{6, 3}, {12, 3}, {12, 4}, {1, 12}, {1, 4}},
     recurrent_case<RecurrentKind::kGru, 4>,
     by<RecurrentFormula<RecurrentKind::kGru, 4>>},
    {"gru_both_ways",
     {{6, 3}, {9, 3}, {9, 3}, {9, 3}, {9, 3}},
     recurrent_case<RecurrentKind::kGru, 2, 2>,
     by<RecurrentFormula<RecurrentKind::kGru, 2, 2>>},
    {"lstm",
     {{6, 3}, {16, 3}, {16, 4}, {1, 16}},
     recurrent_case<RecurrentKind::kLstm, 3>,
     by<RecurrentFormula<RecurrentKind::kLstm, 3>>},
    {"lstm_both_ways",
     {{6, 3}, {12, 3}, {12, 3}, {12, 3}, {12, 3}},
     recurrent_case<RecurrentKind::kLstm, 2, 2>,
     by<RecurrentFormula<RecurrentKind::kLstm, 2, 2>>},
    {"sru",
     {{6, 4}, {12, 4}, {2, 4}, {1, 8}},
     recurrent_case<RecurrentKind::kSru, 3>,
     by<RecurrentFormula<RecurrentKind::kSru, 3>>},
    {"sru_of_another_width",
     {{6, 3}, {16, 3}, {2, 4}, {1, 8}},
     recurrent_case<RecurrentKind::kSru, 3>,
     by<RecurrentFormula<RecurrentKind::kSru, 3>>},
    {"sru_both_ways",
     {{6, 3}, {9, 3}, {2, 3}, {9, 3}, {2, 3}},
     recurrent_case<RecurrentKind::kSru, 2, 2>,
     by<RecurrentFormula<RecurrentKind::kSru, 2, 2>>},
    {"softmax",
     {{6, 5}},
     [](Tape& t, Inputs in) { return softmax(t, in[0]); },
     by<SoftmaxFormula>,
     -3,
     3},
    {"cross_entropy",
     {{6, 5}},
     [](Tape& t, Inputs in) { return cross_entropy(t, in[0], targets(), 0.25); },
     by<CrossEntropyFormula<1>>,
     -3,
     3},
    {"cross_entropy_scaled_afterwards",
     {{6, 5}},
     [](Tape& t, Inputs in) { return scale(t, cross_entropy(t, in[0], targets()), -2); },
     by<CrossEntropyFormula<-8>>},
    {"linear_cross_entropy",
     {{6, 4}, {5, 4}, {1, 5}},
     [](Tape& t,
        Inputs in) { return linear_cross_entropy(t, in[0], in[1], in[2], targets(), {.scale = 0.25}); },
     by<LinearCrossEntropyFormula>},
    {"linear_cross_entropy_with_a_softcap",
     {{6, 4}, {5, 4}, {1, 5}},
     [](Tape& t, Inputs in) {
       return linear_cross_entropy(t, in[0], in[1], in[2], targets(),
                                   {.scale = 0.25, .softcap = SoftcapFormula::kCap});
     },
     by<CappedCrossEntropyFormula>},
    {"sum", {{6, 5}}, [](Tape& t, Inputs in) { return sum(t, in[0]); }, by<SumFormula<false>>},
    {"mean", {{6, 5}}, [](Tape& t, Inputs in) { return mean(t, in[0]); }, by<SumFormula<true>>},
};

}  // namespace fovea
