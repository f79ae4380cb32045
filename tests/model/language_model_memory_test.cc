// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_memory.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/model/support.h"
#include "tests/model/tape_bytes.h"

namespace fovea {
namespace {

struct Case {
  std::string name;
  LanguageModelConfig config;
  index sequences = 8, length = 48;
};

LanguageModelConfig base() {
  LanguageModelConfig c;
  c.layers = 3;
  c.heads = 4;
  c.width = 64;
  c.block = 48;
  c.vocabulary = 500;
  return c;
}

constexpr const char* kEncoders[] = {"rnn",
                                     "gru",
                                     "lstm",
                                     "sru",
                                     "lstm:layers=3",
                                     "conv3",
                                     "conv3:32,conv3:32,conv1",
                                     "conv3:32:gated,conv1",
                                     "lstm:32,ff,lstm:64",
                                     "conv5:plain:gated",
                                     "attention",
                                     "attention:no-output:plain",
                                     "attention:layers=2:plain",
                                     "ff",
                                     "attention-rnn",
                                     "attention-rnn:heads=4",
                                     "conv3,attention:window=8,lstm",
                                     "conv3+lstm",
                                     "conv3+lstm+gru",
                                     "conv3+lstm+gru+rnn",
                                     "ff+ff+ff",
                                     "conv3:32+conv5:96",
                                     "conv3:48+conv3:40",
                                     "conv2:40+conv3:24+conv5:48,conv1",
                                     "attention+ff+conv3",
                                     "transformer,attention-rnn+lstm:32,ff",
                                     "conv3:dilation=8",
                                     "conv5:32:dilation=8:gated,conv1",
                                     "gru:layers=3:residual",
                                     "gru:40,conv3:24,conv1",
                                     "lstm:layers=4",
                                     "sru:layers=3"};

std::vector<Case> cases() {
  std::vector<Case> all = {{"base", base()}, {"source", source_config(), 8, 40}};
  const auto add = [&](const std::string& name, auto change) {
    Case c{name, base()};
    change(c.config);
    all.push_back(c);
  };
  add("relu", [](auto& c) { c.activation = Activation::kRelu; });
  add("rms", [](auto& c) { c.norm = NormKind::kRms; });
  add("post", [](auto& c) { c.norm_position = NormPosition::kPost; });
  add("grouped", [](auto& c) { c.kv_heads = 1; });
  add("narrow heads", [](auto& c) { c.head_dim = 4; });
  add("wide heads", [](auto& c) { c.head_dim = 48; });
  add("ff", [](auto& c) { c.ff = 700; });
  add("dropout", [](auto& c) { c.dropout = 0.1; });
  add("alibi", [](auto& c) { c.position = enum_from_name<PositionKind>("alibi"); });
  add("untied", [](auto& c) { c.tie = false, c.bias = true; });
  add("one layer", [](auto& c) { c.layers = 1; });
  add("deep", [](auto& c) { c.layers = 9, c.width = 32; });
  const auto encoder = [&](const char* layers) {
    add(layers, [=](auto& c) {
      c.kind = LanguageModelKind::kEncoder;
      c.encoder = layers;
      c.position = PositionKind::kNone;
    });
  };
  for (const char* layers : kEncoders) encoder(layers);
  for (Case& c : std::span(all).last(5)) c.config.dropout = 0.1;
  return all;
}

void expect_activations(const Case& c, TapeMode mode, Precision precision) {
  SCOPED_TRACE(testing::Message() << c.name << (mode == TapeMode::kTrain ? ", train" : "") << ", "
                                  << precision_name(precision));
  OwnedBatch batch(std::vector<index>(static_cast<std::size_t>(c.sequences), c.length),
                   c.config.vocabulary);
  for (std::size_t n = 0; n < batch.ids.size(); ++n) {  // as many tokens as there are
    batch.ids[n] = static_cast<std::int32_t>(static_cast<index>(n) % c.config.vocabulary);
  }
  const LanguageModel model(c.config, 1);
  Tape tape(Context(2).with(precision), mode);
  for (int step = 0; step < 2; ++step) {
    tape.reset();
    const Variable loss = model.loss(tape, batch.view());
    if (mode == TapeMode::kTrain) tape.backward(loss);
  }
  const TapeLoad load{.tokens = c.sequences * c.length, .mode = mode, .precision = precision};
  const double share = bytes_used(tape) / activation_bytes(c.config, load);
  EXPECT_LT(share, 1.02);
  EXPECT_GT(share, 0.96);
}

TEST(LanguageModelMemory, ActivationsAreThoseOfATape) {
  for (const Case& c : cases()) {
    expect_activations(c, TapeMode::kTrain, Precision::kFloat32);
    expect_activations(c, TapeMode::kInference, Precision::kFloat32);
    expect_activations(c, TapeMode::kTrain, Precision::kBFloat16);
  }
}

// Panels are filled up to the width of registers: at most one more for each matrix. Training packs
// W as well as W^T where rows are far apart, and with AVX2 always.
TEST(LanguageModelMemory, PackedFormsAreCopiesOfTheMatrices) {
  LanguageModelConfig c = base();
  const double matrices = 3.0 * (4 * 64 * 64 + 2 * 64 * 256) + 300 * 64;
  const double one = packed_bytes(c, {1000, TapeMode::kInference});
  const double both = packed_bytes(c, {1000, TapeMode::kTrain});
  EXPECT_GE(one, 4 * matrices);
  EXPECT_LT(one, 4 * 1.2 * matrices);
  const bool in_place = reads_well_in_place<float>({nullptr, 64, 64});
  EXPECT_GE(both, in_place ? one : 1.9 * one);
  EXPECT_LE(both, in_place ? one : 2.2 * one);
  EXPECT_EQ(packed_bytes(c, {64, TapeMode::kTrain}), 0);
  EXPECT_EQ(packed_bytes(c, {64, TapeMode::kInference}), one);

  c.ff = 4096;
  const double one_wide = packed_bytes(c, {1000, TapeMode::kInference});
  const double more_wide = packed_bytes(c, {1000, TapeMode::kTrain}) - one_wide;
  EXPECT_GE(more_wide, in_place ? 4.0 * 3 * 64 * 4096 : .9 * one_wide);
  EXPECT_LE(more_wide, in_place ? 4.0 * 3 * 64 * 4096 : 1.2 * one_wide);
}

// Two bfloat16 take the place of a float; W and W^T are both packed, as none is read in place. The
// weights of recurrent steps are float32.
TEST(LanguageModelMemory, PackedFormsOfBFloat16AreHalfAsLargeWhereThereArePairs) {
  LanguageModelConfig c = base();
  const auto packed = [&](TapeMode mode, Precision precision) {
    return packed_bytes(c, {.tokens = 1000, .mode = mode, .precision = precision});
  };
  const double whole = packed(TapeMode::kInference, Precision::kFloat32);
  const double rounded = packed(TapeMode::kInference, Precision::kBFloat16);
  EXPECT_EQ(rounded, has_bfloat16_products() ? whole / 2 : whole);
  const double both = packed(TapeMode::kTrain, Precision::kBFloat16);
  EXPECT_GT(both, 1.9 * rounded);
  EXPECT_LT(both, 2.2 * rounded);
  c.kind = LanguageModelKind::kEncoder;
  c.position = PositionKind::kNone;
  const auto of_layer = [&](const char* layers) {
    c.encoder = layers;
    return packed(TapeMode::kInference, Precision::kBFloat16);
  };
  const double input = (has_bfloat16_products() ? 2.0 : 4.0) * 4 * 64 * 64;
  EXPECT_EQ(of_layer("lstm:layers=2") - of_layer("lstm"), input + 4.0 * 4 * 64 * 64);
}

TEST(LanguageModelMemory, GradientsOfATableOfItsOwnAreThoseOfTheRowsOfAnUpdate) {
  LanguageModelConfig c = base();
  c.vocabulary = 30000;
  EXPECT_EQ(gradient_bytes(c, 384), 4.0 * static_cast<double>(parameter_count(c)));
  c.tie = false;
  const double all = 4.0 * static_cast<double>(parameter_count(c)), table = 4.0 * 30000 * 64;
  EXPECT_EQ(gradient_bytes(c, 384), all - table + 4.0 * 2.5 * 384 * 64 + 8.0 * 30000);

  const OwnedBatch batch({100, 284}, 30000);
  c.block = 284;
  const LanguageModel model(c, 1);
  Tape tape(Context(2));
  tape.backward(model.loss(tape, batch.view()));
  Parameter& tokens = *model.parameters()[0];
  EXPECT_FALSE(tokens.gradient.defined());
  EXPECT_GT(tokens.row_gradient.size(), 100);
  EXPECT_LE(tokens.row_gradient.size(), 384);
}

TEST(LanguageModelMemory, ScratchGrowsWithThreadsAndVocabulary) {
  LanguageModelConfig c = base();
  const double two = scratch_bytes(Context(2), c, {384});
  EXPECT_GT(scratch_bytes(Context(4), c, {384}), two);
  c.vocabulary = 30000;
  EXPECT_GT(scratch_bytes(Context(2), c, {384}), two + 4 * 29000 * 256);
}

// What is recorded lies on the tape; what is not, and what backward makes, is scratch memory.
TEST(LanguageModelMemory, ScratchHoldsWhatLayersMakeBesideTheTape) {
  LanguageModelConfig c = base();
  c.kind = LanguageModelKind::kEncoder;
  c.position = PositionKind::kNone;
  c.vocabulary = 3;
  constexpr index kTokens = 10000;
  const auto floats = [&](const char* layers, TapeMode mode) {
    c.encoder = "ff";
    const double without = scratch_bytes(Context(1), c, {kTokens, mode});
    c.encoder = layers;
    return (scratch_bytes(Context(1), c, {kTokens, mode}) - without) / 4 / kTokens;
  };
  const double loss = 3 * 96 / double{kTokens} + 1;  // that of "ff" is the scratch of the loss
  EXPECT_NEAR(floats("lstm", TapeMode::kTrain), 80 - loss, 1);
  EXPECT_NEAR(floats("lstm", TapeMode::kInference), 272 + 2 * 80 - loss, 1);
  // Of 209 sequences of 48 tokens, with four rows of zeros around each.
  const double rows = 1 + 210 * 4 / double{kTokens};
  EXPECT_NEAR(floats("conv5", TapeMode::kTrain),
              64 * rows + 2 * 5 * 64 * 64 / double{kTokens} - loss, 1);
  EXPECT_NEAR(floats("conv5", TapeMode::kInference), 64 * rows - loss, 1);
  EXPECT_NEAR(floats("conv3", TapeMode::kTrain), 2 * 64 + 4 * 64 * 64 / double{kTokens} - loss, 1);
  EXPECT_NEAR(floats("attention-rnn", TapeMode::kInference), 80 - loss, 1);
}

// By hand: 4 heads of width 16 have q, k, v and o, and as many gradients, of two bytes each. What
// the tape keeps rounded is rounded once; without an output projection that is all but o.
TEST(LanguageModelMemory, AttentionRoundsWhatTheTapeKeepsWhole) {
  LanguageModelConfig c = base();
  c.kind = LanguageModelKind::kEncoder;
  c.vocabulary = 3;  // so that the loss takes less
  const auto of_token = [&](const char* layers, TapeMode mode, Precision precision) {
    c.encoder = layers;
    const auto bytes = [&](index tokens) {
      return scratch_bytes(Context(1), c, {.tokens = tokens, .mode = mode, .precision = precision});
    };
    return (bytes(4000) - bytes(3000)) / 1000;
  };
  const auto rounded = [&](const char* layers) {
    return of_token(layers, TapeMode::kTrain, Precision::kBFloat16);
  };
  const double loss = of_token("attention", TapeMode::kTrain, Precision::kFloat32);
  const bool pairs = has_bfloat16_products();
  EXPECT_EQ(loss, 4);
  EXPECT_EQ(rounded("attention"), loss);
  EXPECT_EQ(rounded("attention:no-output"), pairs ? 2 * 2 * 64 : loss);
  EXPECT_EQ(of_token("attention:no-output", TapeMode::kTrain, Precision::kFloat32), loss);
  c.position = PositionKind::kRotary;  // makes rows of q and k, and their gradients
  const double made = 2 * 2 * 64;
  EXPECT_EQ(of_token("attention", TapeMode::kTrain, Precision::kFloat32), 4 * made);
  EXPECT_EQ(rounded("attention"), pairs ? 2 * made : 4 * made);
  c.position = PositionKind::kNone;
  c.qk_norm = true;
  EXPECT_EQ(rounded("attention"), pairs ? 2 * 2 * 4 * 64 : loss);
  c.qk_norm = false;
  c.attention_norm = AttentionNormKind::kNone;
  EXPECT_EQ(rounded("attention"), loss) << "without a norm nothing is rounded";
  EXPECT_EQ(of_token("attention", TapeMode::kInference, Precision::kBFloat16), loss);
}

TEST(LanguageModelMemory, PackedFormsAreThoseOfJoinsAndOfTheLastLayer) {
  LanguageModelConfig c = base();
  c.kind = LanguageModelKind::kEncoder;
  c.tie = false;
  const auto packed = [&](const char* layers) {
    c.encoder = layers;
    return packed_bytes(c, {1000, TapeMode::kInference});
  };
  EXPECT_EQ(packed("ff+ff") - packed("ff,ff"), 4.0 * 2 * 64 * 64);  // the join
  EXPECT_GT(packed("lstm:128") - packed("lstm:64"), 4.0 * 300 * 64);
}

TEST(LanguageModelMemory, CachesHoldKeysAndValues) {
  LanguageModelConfig c = base();
  c.kv_heads = 2;
  EXPECT_EQ(cache_bytes(c, 10), 4.0 * 2 * 3 * 10 * 2 * 16);
  c.kind = LanguageModelKind::kEncoder;
  c.position = PositionKind::kNone;
  c.tie = false;
  c.encoder = "conv3:32:layers=3";  // the first reads 64 columns, the others 32
  EXPECT_EQ(cache_bytes(c, 10), 4.0 * 2 * (64 + 2 * 32));
}

}  // namespace
}  // namespace fovea
