// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/model/layer_table.h"
#include "tests/model/support.h"

namespace fovea {
namespace {

EncoderLayerSpec spec(index window) {
  EncoderLayerSpec s;
  s.window = window;
  return s;
}

TEST(LayerOptions, WhatALayerSeesFollowsFromItsSight) {
  EncoderConfig c = resolve(small_config());
  EXPECT_EQ(attention_options(c, spec(3), 1).mask.name(), "causal");
  EXPECT_EQ(attention_options(c, spec(3), 1).window, 3);
  c.sight = Sight::kWhole;
  EXPECT_TRUE(attention_options(c, spec(0), 1).mask.parts().empty());
  EXPECT_EQ(attention_options(c, spec(3), 1).mask.name(), "window(3, 3)");
}

TEST(LayerOptions, ProjectionsToTheSumStartSmallerInDeepModels) {
  const EncoderConfig c = resolve(small_config());
  EXPECT_EQ(attention_options(c, spec(0), 8).output_init.b, residual_init(8).b);
  EXPECT_LT(feed_forward_options(c, 8).output_init.b, feed_forward_options(c, 1).output_init.b);
  EXPECT_EQ(feed_forward_options(c, 8).input_init.b, kInitDeviation);
}

TEST(LayerOptions, PartsAreThoseThatTheConfigurationNames) {
  EncoderConfig c = resolve(small_config());
  c.position = enum_from_name<PositionKind>("alibi");
  c.sink = true;
  const auto parts = attention_options(c, spec(0), 1).parts;
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].learning == LayerPart::Learning::kFixed, parts[0].tensor == "slopes");
}

}  // namespace
}  // namespace fovea
