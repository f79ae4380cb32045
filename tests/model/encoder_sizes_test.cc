// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/encoder_sizes.h"

#include <gtest/gtest.h>

#include "tests/model/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

LanguageModelConfig config(LanguageModelKind kind, std::string encoder = {}) {
  LanguageModelConfig c = small_config();
  c.kind = kind;
  c.encoder = std::move(encoder);
  c.position = PositionKind::kNone;
  return c;
}

LanguageModelConfig encoder(std::string layers) {
  return config(LanguageModelKind::kEncoder, std::move(layers));
}

std::vector<SizedStage> stages(const LanguageModelConfig& c) { return sized_stages(resolve(c)); }

TEST(EncoderSizes, ATransformerIsItsLayers) {
  LanguageModelConfig c = small_config();
  c.window = "3,0";
  const auto all = stages(c);
  ASSERT_EQ(all.size(), 2);
  EXPECT_EQ(all[0].branches[0].spec.window, 3);
  EXPECT_EQ(all[1].branches[0].spec.window, 0);
  EXPECT_EQ(all[1].branches[0].spec.head_dim, 4);
  EXPECT_EQ(all[1].branches[0].spec.ff, 32);
}

TEST(EncoderSizes, WidthsGoFromStageToStage) {
  LanguageModelConfig c = encoder("lstm:6,attention:heads=3,conv3+gru:5,ff");
  const auto all = stages(c);
  EXPECT_EQ(all[0].out, 6);
  EXPECT_EQ(all[1].in, 6);
  EXPECT_EQ(all[1].branches[0].spec.head_dim, 2);
  EXPECT_EQ(all[2].branches[0].out, 8);
  EXPECT_EQ(all[2].branches[1].out, 5);
  EXPECT_EQ(all[2].out, 8);
  EXPECT_EQ(all[3].branches[0].spec.ff, 32);
}

TEST(EncoderSizes, WhatReadsLaterTokensIsRefused) {
  EXPECT_THROWS(resolve(encoder("bilstm")), kOptionValue,
                "bilstm reads backwards, too: a language model must not see the tokens");
}

TEST(EncoderSizes, SizesThatDoNotFitAreRefused) {
  EXPECT_THROWS(resolve(encoder("attention:heads=3")), kShape,
                "attention: its 8 columns are not divisible by 3 heads");
  EXPECT_THROWS(resolve(encoder("attention:heads=4:kv-heads=3")), kShape,
                "4 heads are no multiple of 3 kv-heads");
  EXPECT_THROWS(resolve(encoder("attention-rnn:heads=3")), kShape,
                "width 8 is not divisible by 3 heads");
  EXPECT_THROWS(resolve(encoder("lstm:4:residual,conv1:8")), kShape, "8 columns become 4");
  EXPECT_THROWS(resolve(encoder("attention:position=learned")), kOptionValue,
                "position=learned belongs to the embeddings");
  EXPECT_THROWS(resolve(encoder("conv3:dilation=4")), kOptionValue,
                "it sees further back than --block (8)");
  EXPECT_THROWS(resolve(encoder("conv5:dilation=2000000000")), kOptionValue, "--block");
  EXPECT_THROWS(resolve(encoder("attention:heads=8:position=rotary")), kShape, "--head-dim");
  EXPECT_THROWS(resolve(encoder(std::string(70000, 'f'))), kOptionValue, "70000 bytes");
  EXPECT_THROWS(resolve(encoder("lstm:4")), kShape,
                "--tie: the last layer has 4 columns, the token embeddings 8");
  EXPECT_THROWS(resolve(encoder("ff:layers=65537")), kOptionValue, "layers");
}

TEST(EncoderSizes, TheTextOfAnEncoderBelongsToTheModelEncoder) {
  EXPECT_THROWS(resolve(config(LanguageModelKind::kEncoder)), kOptionValue, "no layers are given");
  EXPECT_THROWS(resolve(config(LanguageModelKind::kLstm, "gru")), kOptionValue,
                "--encoder belongs to --model encoder; it is --model lstm");
}

TEST(EncoderSizes, FlopsAreThoseOfTheMatrices) {
  const auto per_token = [](const LanguageModelConfig& c) { return flops_per_token(c); };
  const double output = 8 * 11;
  EXPECT_EQ(per_token(config(LanguageModelKind::kLstm)), 6 * (2 * 4 * 8 * 8 * 2 + output));
  EXPECT_EQ(per_token(encoder("conv3:gated")), 6 * (2 * 3 * 8 * 8 + output));
  EXPECT_EQ(per_token(encoder("conv1:4:plain,sru:8")), 6 * (8 * 4 + 4 * 4 * 8 + output));
  EXPECT_EQ(per_token(encoder("ff:ff=5,ff:ff=5")), per_token(encoder("ff:ff=5:layers=2")));
}

}  // namespace
}  // namespace fovea
