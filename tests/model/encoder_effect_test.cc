// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "fovea/config/field.h"
#include "fovea/model/encoder_spec.h"
#include "tests/model/encoder_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAreArray;

LanguageModelConfig with(LanguageModelConfig config, PositionKind position) {
  config.position = position;
  return config;
}

// The settings that have no effect on these layers.
std::vector<std::string> without_effect(const LanguageModelConfig& config) {
  LanguageModelConfig resolved = resolve(config);
  std::vector<std::string> names;
  for (const Field& field : fields_of(resolved)) {
    if (field.name == "forget_bias") continue;  // see the test below
    if (!lacks_for_effect(field.traits.part, resolved, stages(config)).empty()) {
      names.push_back(field.name);
    }
  }
  return names;
}

const std::vector<std::string> kOfAttention = {
    "heads",          "kv_heads", "head_dim", "qk_norm",     "score",
    "attention_norm", "sink",     "softcap",  "log_n_scale", "score_scale"};
const std::vector<std::string> kOfPositions = {"position_max",    "sinusoid",  "t5_buckets",
                                               "t5_max_distance", "shaw_clip", "rope_base",
                                               "rope_local_base"};
const std::vector<std::string> kOfOthers = {"ff",         "activation", "norm", "norm_position",
                                            "ln_variant", "bias"};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(EncoderEffect, RecurrentLayersReadNeitherAttentionNorNorms) {
  const auto all = joined(joined(kOfAttention, kOfPositions), kOfOthers);
  for (const char* layers : {"lstm", "gru:6,sru", "attention-rnn", "conv3:6,lstm"}) {
    EXPECT_THAT(without_effect(encoder(layers)), UnorderedElementsAreArray(all)) << layers;
  }
}

TEST(EncoderEffect, OnlyLstmsHaveForgetGatesToOpen) {
  const auto lacks = [](const char* layers) {
    const auto resolved = resolve(encoder(layers));
    return lacks_for_effect("lstm", resolved, stages(encoder(layers)));
  };
  EXPECT_EQ(lacks("conv3,lstm"), "");
  EXPECT_EQ(lacks("gru,attention"), "a layer lstm or bilstm in --encoder");
}

TEST(EncoderEffect, ALayerReadsWhatItHas) {
  EXPECT_THAT(without_effect(encoder("attention")),
              UnorderedElementsAreArray(joined(kOfPositions, {"ff", "activation"})));
  EXPECT_THAT(without_effect(encoder("transformer")), UnorderedElementsAreArray(kOfPositions));
  EXPECT_THAT(
      without_effect(encoder("lstm:residual")),
      UnorderedElementsAreArray(joined(joined(kOfAttention, kOfPositions), {"ff", "activation"})));
  // Side by side, layers are joined by a product, which may have a bias.
  EXPECT_THAT(without_effect(encoder("lstm+gru")),
              UnorderedElementsAreArray(
                  joined(joined(kOfAttention, kOfPositions),
                         {"ff", "activation", "norm", "norm_position", "ln_variant"})));
}

TEST(EncoderEffect, WhatALayerSaysItselfCountsMore) {
  const LanguageModelConfig own = encoder("transformer:heads=2:ff=9:activation=relu");
  EXPECT_THAT(without_effect(own),
              UnorderedElementsAreArray(
                  joined(kOfPositions, {"heads", "kv_heads", "head_dim", "ff", "activation"})));
  EXPECT_THAT(without_effect(encoder("transformer:heads=2:ff=9:activation=relu,transformer")),
              UnorderedElementsAreArray(kOfPositions));
}

TEST(EncoderEffect, PositionsAreReadByAttentionOrJoinTheEmbeddings) {
  EXPECT_THAT(without_effect(with(encoder("lstm"), PositionKind::kRotary)),
              testing::IsSupersetOf({"position", "rope_base"}));
  const auto rotary = without_effect(with(encoder("attention"), PositionKind::kRotary));
  EXPECT_THAT(rotary, testing::Not(testing::Contains(testing::AnyOf("position", "rope_base"))));
  EXPECT_THAT(without_effect(with(encoder("attention:position=none"), PositionKind::kRotary)),
              testing::IsSupersetOf({"position", "rope_base"}));
  LanguageModelConfig local = with(encoder("attention"), PositionKind::kRotary);
  EXPECT_THAT(without_effect(local), testing::Contains("rope_local_base"));
  local.encoder = "attention:window=3";
  EXPECT_THAT(without_effect(local), testing::Not(testing::Contains("rope_local_base")));
  const auto sinusoidal = without_effect(with(encoder("lstm"), PositionKind::kSinusoidal));
  EXPECT_THAT(
      sinusoidal,
      testing::Not(testing::Contains(testing::AnyOf("position", "position_max", "sinusoid"))));
  EXPECT_THAT(without_effect(encoder("attention:position=shaw")),
              testing::Not(testing::Contains("shaw_clip")));
  EXPECT_THAT(without_effect(encoder("attention:position=t5")),
              testing::Not(testing::Contains(testing::AnyOf("t5_buckets", "t5_max_distance"))));
}

// A name that a field misspells would never be checked.
TEST(EncoderEffect, APartThatNoModelHasIsAnError) {
  EXPECT_THROWS(lacks_for_effect("atention", EncoderConfig(), {}), kInternal, "atention");
}

TEST(EncoderEffect, WithoutLayersNoneIsRead) {
  EncoderConfig config;
  config.position = PositionKind::kNone;
  EXPECT_FALSE(lacks_for_effect("heads", config, {}).empty());
  EXPECT_FALSE(lacks_for_effect("norm", config, {}).empty());
  EXPECT_THAT(lacks_for_effect("", config, {}), IsEmpty());
}

}  // namespace
}  // namespace fovea
