// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/encoder_spec.h"
#include "tests/model/encoder_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

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

TEST(EncoderSizes, WhatReadsLaterTokensIsRefusedWhereOnlyThePastMayBeSeen) {
  EXPECT_THROWS(resolve(encoder("bilstm")), kOptionValue,
                "bilstm reads backwards, too: a language model must not see the tokens");
  EncoderConfig c = encoder("bilstm:5");
  c.sight = Sight::kWhole;
  EXPECT_EQ(last_width(c, size_stages(c, parse_encoder(c.encoder))), 10);
}

// Heads that are not projected side by side: their own width, and a sum only if it is that of x.
TEST(EncoderSizes, AttentionWithoutAnOutputProjectionHasTheWidthOfItsHeads) {
  const auto all =
      stages(encoder("attention:heads=2:head-dim=3:no-output:layers=2,attention:no-output,ff:plain,"
                     "attention:heads=2:head-dim=4:no-output"));
  EXPECT_EQ(all[0].out, 6);
  EXPECT_EQ(all[0].branches[0].spec.residual, false);
  EXPECT_EQ(all[1].out, 6);
  EXPECT_EQ(all[1].branches[0].spec.residual, true);
  EXPECT_EQ(all[3].out, 8);
  EXPECT_THROWS(resolve(encoder("attention:head-dim=3:no-output:residual")), kShape,
                "8 columns become 6");
}

TEST(EncoderSizes, WithoutStagesTheWidthIsThatOfTheEmbeddings) {
  EXPECT_EQ(last_width(small_config(), {}), 8);
  EXPECT_FALSE(ends_with_norm(small_config(), {}));
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
  EXPECT_THROWS(resolve(encoder("conv3:activation=geglu")), kOptionValue,
                "conv3:activation=geglu is of feed-forward networks");
  EXPECT_THROWS(resolve(encoder("dwconv8")), kOptionValue,
                "dwconv8: its width must be 2 to 7 tokens");
  EXPECT_THROWS(resolve(encoder("dwconv1")), kOptionValue, "its width must be 2 to 7 tokens");
  LanguageModelConfig narrow = encoder("dwconv7");
  narrow.block = 6;
  EXPECT_THROWS(resolve(narrow), kOptionValue, "it sees further back than --block (6)");
  EXPECT_THROWS(resolve(encoder("conv5:dilation=2000000000")), kOptionValue, "--block");
  EXPECT_THROWS(resolve(encoder("attention:heads=8:position=rotary")), kShape, "--head-dim");
  EXPECT_THROWS(resolve(encoder(std::string(70000, 'f'))), kOptionValue, "70000 bytes");
  EXPECT_THROWS(resolve(encoder("lstm:4")), kShape,
                "--tie: the last layer has 4 columns, the token embeddings 8");
  EXPECT_THROWS(resolve(encoder("ff:layers=65537")), kOptionValue, "layers");
}

TEST(EncoderSizes, StepsOfAttentionMustFit) {
  EXPECT_THROWS(resolve(encoder("attention:dilation=2:strided=3")), kOptionValue,
                "dilation= and strided= exclude each other");
  EXPECT_THROWS(resolve(encoder("attention:dilation=4096")), kOptionValue,
                "a token sees itself alone");
}

TEST(EncoderSizes, ATextCnnDescribesAWholeText) {
  EXPECT_THROWS(resolve(encoder("textcnn:3")), kOptionValue, "it belongs to train classify");
  EncoderConfig c = encoder("");
  c.sight = Sight::kWhole;
  c.pools = true;
  const auto sized = [&](const char* text) { return size_stages(c, parse_encoder(text)); };
  EXPECT_EQ(sized("textcnn:2,3:5").back().out, 10);
  EXPECT_TRUE(ends_with_text_cnn(sized("conv3,textcnn:2")));
  EXPECT_THROWS(sized("textcnn:2,ff"), kOptionValue, "textcnn must be the last layer, and alone");
  EXPECT_THROWS(sized("conv3+textcnn:2"), kOptionValue, "textcnn must be the last layer");
  EXPECT_THROWS(sized("textcnn:100000"), kOptionValue, "is longer than --max-length");
  EXPECT_EQ(reach_of(""), 1);
  EXPECT_EQ(reach_of("textcnn:3,5,4"), 5);
  EXPECT_EQ(reach_of("bilstm,conv3:dilation=4+conv5,ff"), 9);
  EXPECT_EQ(reach_of("attention:window=40"), 1) << "it may look beyond the text";
  EXPECT_EQ(reverse_columns(sized("bilstm:5:layers=2")), 5);
  EXPECT_EQ(reverse_columns(sized("bigru:5+conv3")), 0);
  EXPECT_EQ(reverse_columns(sized("bigru:5,conv3")), 0);
}

}  // namespace
}  // namespace fovea
