// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fovea
