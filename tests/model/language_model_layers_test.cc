// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "fovea/model/language_model.h"
#include "tests/model/support.h"

namespace fovea {
namespace {

std::vector<std::string> names(const LanguageModelConfig& config) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const LanguageModelLayers layers(resolve(config), ParameterScope(set));
  std::vector<std::string> all;
  for (const Parameter* p : set.parameters()) all.push_back(p->name);
  return all;
}

TEST(LanguageModelLayers, NamesItsParametersInAFixedOrder) {
  LanguageModelConfig c = small_config();
  c.layers = 1;
  EXPECT_THAT(names(c),
              testing::ElementsAre(
                  "embedding.tokens", "embedding.positions", "blocks.0.attention.qkv.weight",
                  "blocks.0.attention.out.weight", "blocks.0.attention_norm.weight",
                  "blocks.0.feed_forward.in.weight", "blocks.0.feed_forward.out.weight",
                  "blocks.0.feed_forward_norm.weight", "norm.weight"));
}

LanguageModelConfig encoder_config(std::string layers) {
  LanguageModelConfig c = small_config();
  c.kind = LanguageModelKind::kEncoder;
  c.encoder = std::move(layers);
  c.position = PositionKind::kNone;
  return c;
}

TEST(LanguageModelLayers, NamesTheLayersOfAnEncoderByTheirPlace) {
  EXPECT_THAT(
      names(encoder_config("conv3:plain,rnn")),
      testing::ElementsAre("embedding.tokens", "encoder.0.convolution.weight",
                           "encoder.0.convolution.bias", "encoder.1.recurrent.weight_ih_l0",
                           "encoder.1.recurrent.weight_hh_l0", "encoder.1.recurrent.bias_l0"));
  EXPECT_THAT(names(encoder_config("ff+rnn")),
              testing::ElementsAre(
                  "embedding.tokens", "encoder.0.0.feed_forward.in.weight",
                  "encoder.0.0.feed_forward.out.weight", "encoder.0.0.norm.weight",
                  "encoder.0.1.recurrent.weight_ih_l0", "encoder.0.1.recurrent.weight_hh_l0",
                  "encoder.0.1.recurrent.bias_l0", "encoder.0.join.weight", "norm.weight"));
}

// Spec L13, L14: the models of the book, with its vocabulary.
TEST(LanguageModelLayers, AttentionRnnHasTheParametersOfTheBook) {
  LanguageModelConfig c;
  c.kind = LanguageModelKind::kAttentionRnn;
  c.layers = c.heads = 1;
  c.position = PositionKind::kNone;
  c.tie = false;
  c.bias = true;
  c.vocabulary = 1071;
  EXPECT_EQ(parameter_count(c), 308143);
  c.heads = 4;
  EXPECT_EQ(parameter_count(c), 374191);
  c.vocabulary = 1078;
  EXPECT_EQ(parameter_count(c), 375990);
  c.heads = 1;
  EXPECT_EQ(parameter_count(c), 309942);
}

TEST(LanguageModelLayers, HasAnOutputOfItsOwnUnlessTied) {
  const auto source = names(source_config());
  EXPECT_THAT(source, testing::Contains("output.weight"));
  EXPECT_THAT(source, testing::Contains("output.bias"));
  EXPECT_THAT(source, testing::Not(testing::Contains("norm.weight")));
}

// Root of the mean square.
double deviation(const Parameter& p) {
  double square = 0;
  for (const float x : p.value.vec<float>()) square += double{x} * double{x};
  return std::sqrt(square / static_cast<double>(p.value.size()));
}

// The deviation of n normal numbers lies within 5 / sqrt(2 n) of its own but once in a million
// times; that of uniform ones nearer.
void expect_deviation(const Parameter& p, double expected) {
  const auto n = static_cast<double>(p.value.size());
  EXPECT_NEAR(deviation(p) / expected, 1, 5 / std::sqrt(2 * n)) << p.name;
}

// GPT-2's start: 0.02, and 0.02 / sqrt(2 layers) where a projection ends in a residual sum.
TEST(LanguageModelLayers, ProjectionsThatEndInAResidualSumStartSmaller) {
  LanguageModelConfig c = small_config();
  c.layers = 8;
  c.width = 64;
  c.vocabulary = 100;
  ParameterSet set({.seed = 1});
  const LanguageModelLayers layers(resolve(c), ParameterScope(set));
  for (const Parameter* p : set.parameters()) {
    if (p->value.shape().axes() < 2) continue;
    expect_deviation(*p, p->name.ends_with("out.weight") ? 0.02 / 4 : 0.02);
  }
}

// Recurrent layers one above the other end in one residual sum: with that of attention two.
TEST(LanguageModelLayers, CellsOneAboveTheOtherCountAsOneResidualSum) {
  LanguageModelConfig c = small_config();
  c.kind = LanguageModelKind::kEncoder;
  c.encoder = "attention,lstm:layers=4:residual";
  c.position = PositionKind::kNone;
  c.width = 64;
  ParameterSet set({.seed = 1});
  const LanguageModelLayers layers(resolve(c), ParameterScope(set));
  int found = 0;
  for (const Parameter* p : set.parameters()) {
    if (!p->name.ends_with("out.weight")) continue;
    expect_deviation(*p, 0.02 / std::sqrt(2));
    ++found;
  }
  EXPECT_EQ(found, 1);
}

LanguageModelConfig from_the_book(LanguageModelKind kind) {
  LanguageModelConfig c = small_config();
  c.kind = kind;
  c.layers = 1;
  c.width = 64;
  c.vocabulary = 100;
  c.position = PositionKind::kNone;
  c.tie = false;
  c.bias = true;
  c.init = InitScheme::kSource;
  return c;
}

// Everything above the table starts from normal(0, 0.01) or 0, the logits too: with them at
// PyTorch's start the model of E5 is .4 nats ahead of the book's after 54 epochs.
TEST(LanguageModelLayers, RecurrentModelsStartAsInTheBook) {
  using enum LanguageModelKind;
  for (const LanguageModelKind kind : {kAttentionRnn, kRnn, kGru, kLstm}) {
    ParameterSet set({.seed = 1});
    const LanguageModelLayers layers(resolve(from_the_book(kind)), ParameterScope(set));
    for (const Parameter* p : set.parameters()) {
      if (p->name.starts_with("embedding")) {
        expect_deviation(*p, 1);
      } else if (p->value.shape().axes() < 2) {
        EXPECT_EQ(deviation(*p), 0) << p->name;
      } else {
        expect_deviation(*p, 0.01);
      }
    }
  }
}

// PyTorch's Linear: uniform(-b, b), b = 1 / sqrt(inputs), whose deviation is b / sqrt(3).
TEST(LanguageModelLayers, TheTransformerOfTheBookStartsItsLogitsAsPyTorch) {
  ParameterSet set({.seed = 1});
  const LanguageModelConfig c = from_the_book(LanguageModelKind::kTransformer);
  const LanguageModelLayers layers(resolve(c), ParameterScope(set));
  int seen = 0;
  for (const Parameter* p : set.parameters()) {
    if (!p->name.starts_with("output.")) continue;
    expect_deviation(*p, 1 / std::sqrt(64 * 3.0));
    ++seen;
  }
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace fovea
