// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/text_parts.h"

#include <gmock/gmock.h>

#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::HasSubstr;
using testing::Not;

TEST(ExplanationTextParts, ATokenIsShownSafely) {
  EXPECT_EQ(shown_token(" a"), "\u2423a");
  EXPECT_EQ(shown_token("\n"), "\\n");
  EXPECT_EQ(shown_token("\u200D"), "[U+200D]");
  EXPECT_EQ(shown_token("\u0301"), "\u25CC\u0301");
  EXPECT_EQ(shown_token("\u3000"), "[U+3000]");
  EXPECT_EQ(shown_token("\u3000\u00A0"), "[U+3000][U+00A0]");
}

TEST(ExplanationTextParts, AWindowCountsFromTheFirst) {
  const TokenWindow tokens = window_of("2-3", "tokens", 1, 3),
                    steps = window_of("2", "steps", 2, 3);
  EXPECT_EQ(tokens.begin, 1);
  EXPECT_EQ(tokens.end, 3);
  EXPECT_EQ(steps.begin, 0);
  EXPECT_EQ(steps.end, 1);
  EXPECT_THROWS(window_of("1-3", "steps", 2, 3), kOptionValue,
                "--steps 1-3: expected A-B within 2-4");
  EXPECT_THROWS(window_of("2-5", "steps", 2, 3), kOptionValue, "within 2-4");
}

// [2 sequences, 2 heads, 1, 1]
TEST(ExplanationTextParts, MeansAreOverHeadsAndSequences) {
  const ExplainedLayer layer{.name = "layer",
                             .heads = 2,
                             .queries = 1,
                             .keys = 1,
                             .weights = {.1F, .2F, .3F, .6F},
                             .sequences = 2};
  EXPECT_THAT(mean_weights(layer, 0), ElementsAre(FloatEq(.3F)));
  EXPECT_THAT(mean_weights(layer, 2), ElementsAre(FloatEq(.4F)));
  EXPECT_THAT(mean_weights(layer, 0, 1), ElementsAre(FloatEq(.45F)));
  EXPECT_THAT(mean_weights(layer, 1, 0), ElementsAre(.1F));
  EXPECT_EQ(heads_shown(layer, 0), "mean of 2 heads");
  EXPECT_EQ(heads_shown(layer, 2), "head 2");
}

TEST(ExplanationTextParts, LinesFit) {
  EXPECT_EQ(wrapped("one two three", 8), "one two\nthree\n");
  EXPECT_EQ(largest_of({.5F, -2, 1}), 2);
}

TEST(ExplanationTextParts, CutLongLabels) {
  const Explanation e{.kind = {"text classifier", "文本分类器"},
                      .tokens = {"a"},
                      .prediction = {{std::string(10'000, 'x'), .75}}};
  EXPECT_EQ(prediction_lines(e, 80), "label: " + std::string(37, 'x') + "... 0.7500\n");
}

// A model of numbers takes the mean of the training for nothing.
TEST(ExplanationTextParts, SaliencySaysWhatBecomesZero) {
  Explanation e{.kind = {"text classifier", "文本分类器"},
                .tokens = {"a"},
                .saliency = {SaliencyMethod::kGradientInput, {"the logit", ""}, {1}}};
  EXPECT_THAT(saliency_lines(e, 1000), HasSubstr("if the token's embedding became 0."));
  e.numbers = ExplainedSample{};
  EXPECT_THAT(saliency_lines(e, 1000),
              HasSubstr("if the numbers became the means of the training."));
  e.saliency.method = SaliencyMethod::kGradient;
  EXPECT_THAT(saliency_lines(e, 1000), HasSubstr("how fast it changes with the numbers."));
  e.saliency.method = SaliencyMethod::kRollout;
  EXPECT_THAT(saliency_lines(e, 1000), Not(HasSubstr("numbers")));
}

}  // namespace
}  // namespace fovea
