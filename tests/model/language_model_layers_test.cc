// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

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

TEST(LanguageModelLayers, HasAnOutputOfItsOwnUnlessTied) {
  const auto source = names(source_config());
  EXPECT_THAT(source, testing::Contains("output.weight"));
  EXPECT_THAT(source, testing::Contains("output.bias"));
  EXPECT_THAT(source, testing::Not(testing::Contains("norm.weight")));
}

// GPT-2's start: 0.02, and 0.02 / sqrt(2 layers) where a projection ends in a residual sum. The
// deviation of n normal numbers lies within 5 / sqrt(2 n) of its own but once in a million times.
TEST(LanguageModelLayers, ProjectionsThatEndInAResidualSumStartSmaller) {
  LanguageModelConfig c = small_config();
  c.layers = 8;
  c.width = 64;
  c.vocabulary = 100;
  ParameterSet set({.seed = 1});
  const LanguageModelLayers layers(resolve(c), ParameterScope(set));
  for (const Parameter* p : set.parameters()) {
    if (p->value.shape().axes() < 2) continue;
    double square = 0;
    for (const float x : p->value.vec<float>()) square += double{x} * double{x};
    const auto n = static_cast<double>(p->value.size());
    const double expected = p->name.ends_with("out.weight") ? 0.02 / 4 : 0.02;
    EXPECT_NEAR(std::sqrt(square / n) / expected, 1, 5 / std::sqrt(2 * n)) << p->name;
  }
}

}  // namespace
}  // namespace fovea
