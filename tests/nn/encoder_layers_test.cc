// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/encoder_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fovea/attention/mask/band.h"
#include "fovea/nn/attention_rnn.h"
#include "tests/nn/pieces.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index C = 4;

struct LayerCase {
  std::string name;
  std::unique_ptr<EncoderLayer> (*make)(const ResidualIf& residual, const ParameterScope& scope);
  bool endless;
};

MultiHeadAttentionOptions attention_options() {
  MultiHeadAttentionOptions o;
  o.width = C;
  o.heads = 2;
  o.mask = mask::Causal();
  return o;
}

const std::vector<LayerCase>& cases() {
  static const std::vector<LayerCase> all = {
      {"attention",
       [](const ResidualIf& r, const ParameterScope& s) {
         return attention_layer(attention_options(), r, s);
       },
       false},
      {"feed_forward",
       [](const ResidualIf& r, const ParameterScope& s) {
         return feed_forward_layer({.width = C, .hidden = 6}, r, s);
       },
       true},
      {"recurrent",
       [](const ResidualIf& r, const ParameterScope& s) {
         return recurrent_layer(
             {.kind = RecurrentKind::kLstm, .in = C, .hidden = C, .layers = 3, .dropout = 0.2}, r,
             s);
       },
       true},
      {"convolution",
       [](const ResidualIf& r, const ParameterScope& s) {
         return convolution_layer({.in = C, .out = C, .padding = Padding::kCausal}, r, s);
       },
       true},
      {"block",
       [](const ResidualIf& r, const ParameterScope& s) -> std::unique_ptr<EncoderLayer> {
         const ResidualOptions usual{.norm = {.width = C}};
         return std::make_unique<Block>(
             BlockOptions{attention_options(), {.width = C, .hidden = 6}, r.value_or(usual)}, s);
       },
       false},
      {"attention_rnn",
       [](const ResidualIf&, const ParameterScope& s) -> std::unique_ptr<EncoderLayer> {
         return std::make_unique<AttentionRnn>(
             AttentionRnnOptions{.in = C, .hidden = C, .heads = 2}, s);
       },
       true},
  };
  return all;
}

ResidualIf residual(NormPosition position = NormPosition::kPre) {
  return ResidualOptions{.norm = {.width = C}, .position = position};
}

TEST(EncoderLayers, GoOnWithTheBitsOfTheWhole) {
  constexpr index N = 13;
  const auto x = noise(N * C);
  for (const LayerCase& c : cases()) {
    for (const ResidualIf& r : {ResidualIf(), residual(), residual(NormPosition::kPost)}) {
      SCOPED_TRACE(c.name);
      ParameterSet set({});
      const auto layer = c.make(r, ParameterScope(set));
      randomise(set);
      expect_same_in_pieces(*layer, x, N);
      EXPECT_EQ(layer->begin(N)->endless(), c.endless);
      EXPECT_EQ(layer->width(), C);
    }
  }
}

TEST(EncoderLayers, GradientIsThatOfTheForward) {
  constexpr index N = 6;
  const std::int32_t offsets[] = {0, 2, N};
  const auto x = noise<double>(N * C);
  for (const LayerCase& c : cases()) {
    SCOPED_TRACE(c.name);
    auto set = float64_set();
    ResidualIf with_dropout = residual();
    with_dropout->dropout = 0.2;
    const auto layer = c.make(with_dropout, ParameterScope(set));
    expect_gradients(set, [&](Tape& t) {
      const PackedRows packed = lay_out_rows(t, N, {offsets, 3}, {});
      return layer->forward(t, t.constant(Rows<const double>(x.data(), N, C)), {packed});
    });
  }
}

// The masks of a layer have numbers of their own, up to four for each number of depth: with dropout
// of all but the first sums, the sum of a deep layer drops what no cell inside drops.
TEST(EncoderLayers, ADeepLayerTakesAsManyNumbersAsItHasCells) {
  ParameterSet set({});
  const RecurrentLayersOptions deep{.in = C, .hidden = C, .layers = 5};
  EXPECT_EQ(recurrent_layer(deep, residual(), ParameterScope(set)["a"])->depth(), 5u);
  EXPECT_EQ(recurrent_layer(deep, {}, ParameterScope(set)["b"])->depth(), 5u);
  EXPECT_EQ(feed_forward_layer({.width = C, .hidden = 2}, {}, ParameterScope(set)["c"])->depth(),
            1u);
}

TEST(EncoderLayers, AResidualSumNeedsEqualWidths) {
  ParameterSet set({});
  EXPECT_THROWS(recurrent_layer({.in = C, .hidden = 5}, residual(), ParameterScope(set)), kShape,
                "the layer turns 4 columns into 5");
}

}  // namespace
}  // namespace fovea
