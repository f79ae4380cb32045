// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <sstream>

#include "fovea/explain/shown.h"
#include "tests/explain/sample_explanation.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::HasSubstr;
using testing::Not;

ExplainedLayer layer_of(const std::string& name, std::size_t tokens, index heads) {
  const auto size = static_cast<index>(tokens);
  ExplainedLayer layer{.name = name, .heads = heads, .queries = size, .keys = size};
  for (index h = 0; h < heads; ++h) {
    for (std::size_t n = 0; n < tokens * tokens; ++n) {
      layer.weights.push_back(n % (tokens + 1) == 0 ? 1.0F : 0.0F);
    }
    layer.entropy.push_back(.25);
    layer.distance.push_back(1.5);
    layer.largest.push_back(1);
  }
  return layer;
}

Explanation small(std::size_t tokens = 3) {
  Explanation e{.kind = {"text classifier", "文本分类器"}, .tokens = {}};
  for (std::size_t t = 0; t < tokens; ++t) e.tokens.push_back(t % 2 == 0 ? "film" : "\u4f60");
  e.layers = {layer_of("layer 1 (attention)", tokens, 2),
              layer_of("layer 2 (attention)", tokens, 2)};
  e.prediction = {{"good", .75}, {"bad", .25}};
  e.saliency = {.method = SaliencyMethod::kGradientInput,
                .of = {"the logit of \"good\"", ""},
                .values = std::vector<float>(tokens, .5F)};
  return e;
}

std::string text_of(const Explanation& e, const ExplainView& view = {}, index columns = 80) {
  return explanation_text(e, view, {}, columns);
}

TEST(ExplanationText, SaysPredictionHeadsMapAndWhatNotToConclude) {
  const std::string text = text_of(small());
  for (const char* part : {"label: good 0.7500, bad 0.2500\n", "tokens: 3\n",
                           "layer 1 (attention)    1     0.25      1.50", "1 film -> 1 film",
                           "layer 2 (attention), mean of 2 heads", "gradient x input",
                           "3 film     @@", "the logit of \"good\"", "arXiv:1605.01713",
                           "Attention weights are no explanation by themselves"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

// The first row of a causal map has one key, and so the weight 1.
TEST(ExplanationText, TheLargestWeightIsOfAQueryWithAChoice) {
  Explanation e = small();
  e.layers = {layer_of("layer 1 (attention)", 3, 1)};
  e.layers[0].weights = {1, 0, 0, .25F, .75F, 0, .125F, .5F, .375F};
  e.layers[0].largest = {.75};
  EXPECT_THAT(text_of(e), HasSubstr("0.750  2 \u4f60 -> 2 \u4f60"));
}

TEST(ExplanationText, ShowsTheLayerAndHeadThatAreAskedFor) {
  const std::string text = text_of(small(), {.layer = 1, .head = 2});
  EXPECT_THAT(text, HasSubstr("layer 1 (attention), head 2"));
  EXPECT_THAT(text, HasSubstr("(layer 1 of 2; --layer N shows another)"));
  EXPECT_THAT(text, Not(HasSubstr("layer 2 (attention)")));
}

// Every line fits, wide characters counted, and the rest can be asked for.
TEST(ExplanationText, ShowsAWindowOfALongText) {
  Explanation e = small(60);
  const std::string text = text_of(e);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_THAT(text, HasSubstr("Shown: tokens 1 to"));
  EXPECT_THAT(text_of(e, {.tokens = "31-40"}), HasSubstr("Shown: tokens 31 to 40 of 60"));
  EXPECT_THAT(text_of(e, {.tokens = "7"}), HasSubstr("Shown: tokens 7 to 7 of 60"));
  e.predicts_next = true;
  EXPECT_THAT(text_of(e), HasSubstr("to 60 of 60"));
  EXPECT_THAT(text_of(e), HasSubstr("next token: good 0.7500"));
}

TEST(ExplanationText, ShowsPoolingAndSaliencyWithoutALayer) {
  Explanation e = small();
  e.layers.clear();
  e.pooling = {.5F, .25F, .25F};
  e.notes = {{"A note.", ""}};
  e.prediction.clear();
  e.number = "3.5";
  e.cut = 2;
  const std::string text = text_of(e);
  for (const char* part : {"number: 3.5\n", "tokens: 3 (2 more were cut)\n", "attention as pooling",
                           "1 pooled @@", "A note.\n", "+0.500 #########"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ExplanationText, NothingOfATokenControlsTheTerminal) {
  Explanation e = small();
  e.tokens = {"\x1b[31m", " a", "\u202e\xff"};
  const std::string text = text_of(e);
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
}

TEST(ExplanationText, RefusesWhatIsNotThere) {
  const Explanation e = small();
  EXPECT_THROWS(check_view({.layer = 3}, e), kOptionValue, "--layer: 3");
  EXPECT_THROWS(check_view({.head = 3}, e), kOptionValue, "--head: 3");
  for (const char* tokens : {"0-2", "2-1", "2-4", "x", "1-", "1-2-3", "99999999999999999999"}) {
    EXPECT_THROWS(check_view({.tokens = tokens}, e), kOptionValue, "--tokens");
  }
  EXPECT_NO_THROW(check_view({.layer = 2, .head = 2, .tokens = "1-3"}, e));
}

std::string shown_sample(const Explanation& e, const ExplainView& view = {},
                         const SampleView& sample = {}) {
  return sample_text(e, view, sample, {}, 80);
}

TEST(SampleText, SaysTheSampleBothAxesAndWhatNotToConclude) {
  const std::string text = shown_sample(sample_explanation());
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
  const std::string joint = shown_sample(e, {.layer = 1, .head = 1}, {.joint = 1});
  EXPECT_THAT(joint, HasSubstr("layer 1 (attention), head 1, joint 1: a row is a time step"));
  EXPECT_THAT(joint, Not(HasSubstr("a row is a joint")));
  EXPECT_THAT(joint, HasSubstr("4   ####      -0.500 #########"));  // the saliency of joint 1 alone
  EXPECT_THAT(shown_sample(e, {.layer = 1, .head = 1}, {.joint = 0}),
              HasSubstr("4   @@        +0.250 #########"));
  const std::string time = shown_sample(e, {}, {.time = 6});
  EXPECT_THAT(time, HasSubstr("layer 2 (attention:joints), mean of 2 heads, time step 6"));
  EXPECT_THAT(time, HasSubstr("1     @@    +0.500 #########"));
  const std::string part = shown_sample(e, {}, {.steps = "5-6"});
  EXPECT_THAT(part, HasSubstr("Shown: time steps 5 to 6 of 4 to 6."));
}

TEST(SampleText, WithoutJointsPoolingIsAColumn) {
  Explanation e = sample_explanation();
  e.numbers->joints = 0;
  e.layers.clear();
  e.pooling = {.25F, .5F, .25F};
  e.saliency.values = {1, -2, 0};
  const std::string text = shown_sample(e);
  EXPECT_THAT(text, HasSubstr("sample 7: 3 time steps (4 more were cut)"));
  EXPECT_THAT(text, HasSubstr("5   @@     -2.00 #########"));
  EXPECT_THAT(text, Not(HasSubstr("joint")));
  e.pooling.clear();
  e.layers = {sample_explanation().layers[0]};
  e.layers[0].sequences = 1;
  e.layers[0].weights.resize(2 * 9);
  EXPECT_THAT(shown_sample(e),
              HasSubstr("layer 1 (attention), mean of 2 heads: a row is a time step"));
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
  std::istringstream lines(shown_sample(e));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  EXPECT_THAT(shown_sample(e), HasSubstr("Shown: joints 0 to"));
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
