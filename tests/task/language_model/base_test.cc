// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/language_model/base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fovea {
namespace {

// Qwen 2 has biases of q, k and v alone: those that our layers have beside them are no part of it.
TEST(Base, WhatAModelLacksIsNotTrained) {
  LanguageModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.width = 8;
  config.vocabulary = 20;
  config.position = PositionKind::kRotary;
  config.norm = NormKind::kRms;
  config.activation = LayerActivation::kSwiglu;
  config.bias = true;
  const LanguageModel model(config, 1);
  freeze_what_is_lacking(model, "qwen2");
  std::set<std::string> frozen, biases;
  for (const Parameter* const one : model.parameters()) {
    if (one->name.ends_with(".bias")) biases.insert(one->name);
    if (one->frozen) frozen.insert(one->name);
  }
  biases.erase("blocks.0.attention.qkv.bias");
  biases.erase("blocks.1.attention.qkv.bias");
  EXPECT_EQ(frozen, biases);
  EXPECT_THAT(frozen, testing::Contains("blocks.0.attention.out.bias"));
}

}  // namespace
}  // namespace fovea
