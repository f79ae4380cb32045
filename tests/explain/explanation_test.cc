// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/explanation.h"

#include <gtest/gtest.h>

#include "fovea/model/classifier.h"

namespace fovea {
namespace {

ClassifierConfig config_of(const std::string& encoder) {
  ClassifierConfig c;
  c.encoder = encoder;
  c.width = 8;
  c.heads = 2;
  c.block = 10;
  c.classes = 2;
  c.vocabulary = 9;
  return resolve(c);
}

// As many, in the order and with the heads in which the model's statistics come.
TEST(AttentionLayers, AreThoseOfTheModel) {
  const ClassifierConfig c = config_of(
      "conv3,attention:heads=4:plain,transformer:layers=2,lstm:8+attention,attention-rnn:8");
  const auto layers = attention_layers(sized_stages(c));
  const Classifier model(c, 1);
  ASSERT_EQ(static_cast<index>(layers.size()), model.attentions());
  ASSERT_EQ(layers.size(), 5U);
  EXPECT_EQ(layers[0].name, "layer 1 (attention)");
  EXPECT_EQ(layers[0].heads, 4);
  EXPECT_FALSE(layers[0].residual);
  EXPECT_EQ(layers[2].name, "layer 3 (transformer)");
  EXPECT_TRUE(layers[2].residual);
  EXPECT_FALSE(layers[2].side_by_side);
  EXPECT_TRUE(layers[3].side_by_side);
  EXPECT_EQ(layers[4].name, "layer 5 (attention-rnn)");
  EXPECT_EQ(layers[4].heads, 1);
  std::vector<HeadStatistics> seen(layers.size());
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  const std::int32_t ids[] = {1, 2, 3}, offsets[] = {0, 3};
  Tape tape(Context(1), TapeMode::kInference);
  model.logits(tape, {.ids = {ids, 3}, .offsets = {offsets, 2}}, {.attention = seen});
  for (std::size_t n = 0; n < layers.size(); ++n) {
    EXPECT_EQ(static_cast<index>(seen[n].weights.size()), layers[n].heads * 9) << n;
  }
}

TEST(AttentionLayers, SayWhetherTheyRunOverJoints) {
  ClassifierConfig c;
  c.encoder = "attention,attention:joints";
  c.width = 8;
  c.heads = 2;
  c.block = 10;
  c.classes = 2;
  c.features = 2;
  c.joints = 3;
  const auto layers = attention_layers(sized_stages(resolve(c)));
  EXPECT_FALSE(layers[0].across);
  EXPECT_TRUE(layers[1].across);
  EXPECT_EQ(layers[1].name, "layer 2 (attention:joints)");
}

TEST(AttentionLayers, OtherLayersMayMixTokens) {
  EXPECT_FALSE(has_other_mixing(sized_stages(config_of("attention,ff"))));
  EXPECT_TRUE(has_other_mixing(sized_stages(config_of("attention,conv3"))));
  EXPECT_TRUE(has_other_mixing(sized_stages(config_of("attention,dwconv4"))));
  EXPECT_TRUE(has_other_mixing(sized_stages(config_of("attention-rnn:8"))));
}

}  // namespace
}  // namespace fovea
