// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "fovea/explain/observed_text.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

// By hand: A_2 = [.75 .25; .5 .5], A_1 = [1 0; .25 .75], and the last row of A_2 A_1.
TEST(Rollout, FollowsTheResidualSumsBackToTheTokens) {
  const std::vector<float> second = {.5F, .5F, 1, 0}, first = {1, 0, .5F, .5F};
  const RolloutLayer layers[] = {{first, 1}, {second, 1}};
  const double last[] = {0, 1}, mean[] = {.5, .5};
  EXPECT_THAT(attention_rollout(layers, last), ElementsAre(.625F, .375F));
  EXPECT_THAT(attention_rollout(layers, mean),
              ElementsAre(FloatNear(.71875F, 1e-6F), FloatNear(.28125F, 1e-6F)));
}

TEST(Rollout, TakesTheMeanOfTheHeadsAndKnowsLayersWithoutSum) {
  const std::vector<float> heads = {1, 0, 1, 0, 0, 1, 0, 1};
  const double first[] = {1, 0};
  const RolloutLayer plain[] = {{heads, 2, false}}, summed[] = {{heads, 2, true}};
  EXPECT_THAT(attention_rollout(plain, first), ElementsAre(.5F, .5F));
  EXPECT_THAT(attention_rollout(summed, first), ElementsAre(.75F, .25F));
}

TEST(Rollout, ARowWithoutKeysKeepsItself) {
  const std::vector<float> weights = {0, 0, .5F, .5F};
  const double first[] = {1, 0};
  const RolloutLayer summed[] = {{weights, 1, true}}, plain[] = {{weights, 1, false}};
  EXPECT_THAT(attention_rollout(summed, first), ElementsAre(1, 0));
  EXPECT_THAT(attention_rollout(plain, first), ElementsAre(0, 0));
}

// Tokens 0 and 1, 2 and 3 are sequences; then 0 and 2, 1 and 3, across.
TEST(Rollout, FollowsSequencesAlongBothAxes) {
  const std::vector<float> weights = {1, 0, .5F, .5F, 0, 1, .25F, .75F};
  const double last[] = {0, 1, 0, 0}, third[] = {0, 0, 0, 1};
  const RolloutLayer over[] = {{weights, 1, false, 2}}, across[] = {{weights, 1, false, 2, true}};
  EXPECT_THAT(attention_rollout(over, last), ElementsAre(.5F, .5F, 0, 0));
  EXPECT_THAT(attention_rollout(over, third), ElementsAre(0, 0, .25F, .75F));
  EXPECT_THAT(attention_rollout(across, last), ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(attention_rollout(across, third), ElementsAre(0, .25F, 0, .75F));
}

TEST(Rollout, RefusesOtherSizes) {
  const std::vector<float> weights = {1, 0, 0};
  const double first[] = {1, 0};
  const RolloutLayer layers[] = {{weights, 1}};
  EXPECT_THROWS(attention_rollout(layers, first), kShape, "layer 1 has 3 weights");
}

}  // namespace
}  // namespace fovea
