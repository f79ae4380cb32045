// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sstream>

#include "fovea/explain/text.h"
#include "tests/explain/sample_explanation.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string text_of(const Explanation& e, const ExplainView& view = {},
                    const SampleView& sample = {}) {
  return sample_text(e, view, sample, {}, 80);
}

TEST(SampleText, SaysTheSampleBothAxesAndWhatNotToConclude) {
  const std::string text = text_of(sample_explanation());
  for (const char* part :
       {"label: wave 0.7500, push 0.2500\n",
        "sample 7: 3 time steps of 2 joints (4 more were cut)\n",
        "layer 1 (attention)           1     0.50      1.00    1.000  4 -> 4, joint 0\n",
        "layer 2 (attention:joints)    2     0.25         -    1.000  0 -> 0, time 4\n",
        "layer 1 (attention), mean of 2 heads, mean of 2 joints: a row is a time step",
        "layer 2 (attention:joints), mean of 2 heads, mean of 3 time steps: a row is a",
        "4   @@        -0.250 #####\n", "0   @@      +0.250 #########\n", "attention as pooling",
        "gradient x input of each time step (a row) and joint (a column); below 0 is --",
        "4   ##--    -0.250 #####\n", "the means of the training",
        "Attention weights are no explanation by themselves"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(SampleText, ShowsTheJointTimeStepAndLayerThatAreAskedFor) {
  Explanation e = sample_explanation();
  e.layers[0].weights[2 * 9] = 0.5F;  // joint 1, head 1, from and to time step 4
  e.layers[0].weights[2 * 9 + 1] = 0.5F;
  const std::string joint = text_of(e, {.layer = 1, .head = 1}, {.joint = 1});
  EXPECT_THAT(joint, HasSubstr("layer 1 (attention), head 1, joint 1: a row is a time step"));
  EXPECT_THAT(joint, Not(HasSubstr("a row is a joint")));
  EXPECT_THAT(joint, HasSubstr("4   ####      -0.500 #########"));  // the saliency of joint 1 alone
  EXPECT_THAT(text_of(e, {.layer = 1, .head = 1}, {.joint = 0}),
              HasSubstr("4   @@        +0.250 #########"));
  const std::string time = text_of(e, {}, {.time = 6});
  EXPECT_THAT(time, HasSubstr("layer 2 (attention:joints), mean of 2 heads, time step 6"));
  EXPECT_THAT(time, HasSubstr("1     @@    +0.500 #########"));
  const std::string part = text_of(e, {}, {.steps = "5-6"});
  EXPECT_THAT(part, HasSubstr("Shown: time steps 5 to 6 of 4 to 6."));
}

TEST(SampleText, WithoutJointsPoolingIsAColumn) {
  Explanation e = sample_explanation();
  e.numbers->joints = 0;
  e.layers.clear();
  e.pooling = {.25F, .5F, .25F};
  e.saliency.values = {1, -2, 0};
  const std::string text = text_of(e);
  EXPECT_THAT(text, HasSubstr("sample 7: 3 time steps (4 more were cut)"));
  EXPECT_THAT(text, HasSubstr("5   @@     -2.00 #########"));
  EXPECT_THAT(text, Not(HasSubstr("joint")));
  e.pooling.clear();
  e.layers = {sample_explanation().layers[0]};
  e.layers[0].sequences = 1;
  e.layers[0].weights.resize(2 * 9);
  EXPECT_THAT(text_of(e), HasSubstr("layer 1 (attention), mean of 2 heads: a row is a time step"));
}

TEST(SampleText, EveryLineFits) {
  Explanation e = sample_explanation();
  constexpr index kSteps = 90, kJoints = 50;
  e.tokens.assign(kSteps, "x");
  e.numbers = ExplainedSample{0, 0, kJoints};
  e.pooling.assign(kSteps * kJoints, 1.0F / (kSteps * kJoints));
  e.saliency.values = e.pooling;
  e.layers = {{.name = "layer 1 (attention:joints)",
               .heads = 1,
               .queries = kJoints,
               .keys = kJoints,
               .weights = std::vector<float>(kSteps * kJoints * kJoints, 1.0F / kJoints),
               .largest = {1.0F / kJoints},
               .sequences = kSteps,
               .across = true}};
  std::istringstream lines(text_of(e));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_THAT(text_of(e), HasSubstr("Shown: joints 0 to"));
}

TEST(SampleText, RefusesWhatIsNotThere) {
  const Explanation e = sample_explanation();
  const auto check = [&](const ExplainView& view, const SampleView& sample) {
    check_view(view, sample, e);
  };
  EXPECT_THROWS(check({.layer = 3}, {}), kOptionValue, "--layer: 3");
  EXPECT_THROWS(check({.head = 3}, {}), kOptionValue, "--head: 3");
  EXPECT_THROWS(check({}, {.joint = 2}), kOptionValue, "--joint: 2 is not -1 to 1");
  EXPECT_THROWS(check({}, {.time = 3}), kOptionValue, "--time: 3 is not -1, or 4 to 6");
  EXPECT_THROWS(check({}, {.steps = "3-5"}), kOptionValue, "--steps 3-5: expected A-B within 4-6");
  EXPECT_NO_THROW(check({.layer = 2, .head = 2}, {.joint = 1, .time = 6, .steps = "4-6"}));
  Explanation plain = e;
  plain.numbers->joints = 0;
  plain.layers.clear();
  EXPECT_THROWS(check_view({}, {.joint = 0}, plain), kOptionValue, "the model has no joints");
  EXPECT_THROWS(check_view({}, {.time = 4}, plain), kOptionValue, "--time: 4");
}

}  // namespace
}  // namespace fovea
