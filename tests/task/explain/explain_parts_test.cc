// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/explain_parts.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

TEST(ExplainParts, OrderTheLargestFirst) {
  const std::vector<float> values = {.1F, .5F, .5F, .2F};
  EXPECT_THAT(descending({values.data(), 4}), ElementsAre(1, 2, 3, 0));
}

// Of two sequences with two heads each.
TEST(ExplainParts, TheStrongestWeightIsThatOfAllSequences) {
  const ExplainedLayer layer{.name = "layer 1",
                             .heads = 2,
                             .weights = {.5F, .5F, .4F, .6F, 1, 0, 0, 1,  // sequence 0
                                         .3F, .7F, .5F, .5F, 0, 1, .9F, .1F},
                             .sequences = 2};
  const StrongestWeight first = strongest_weight(layer, 1, 2);
  EXPECT_THAT((std::vector<index>{first.sequence, first.query, first.key}), ElementsAre(1, 0, 1));
  const StrongestWeight second = strongest_weight(layer, 2, 2);
  EXPECT_EQ(second.sequence, 0);
}

TEST(ExplainParts, RefuseWhatHasNoMeaning) {
  EXPECT_THROWS(require_attention(false), kModelWrongKind, "no attention");
  EXPECT_THROWS(require_tokens(false), kInputTooSmall, "no token");
  EXPECT_THROWS(require_target_counts({.saliency = SaliencyMethod::kNone, .target = "a"}),
                kOptionValue, "--target: has no effect");
  EXPECT_NO_THROW(require_target_counts({.target = "a"}));
  EXPECT_EQ(in_quotes("a\n"), "\"a\\n\"");
}

}  // namespace
}  // namespace fovea
