// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/text.h"

#include <gmock/gmock.h>

#include <sstream>

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
  Explanation e{.kind = ExplainedKind::kTextClassifier, .tokens = {}};
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
  e.kind = ExplainedKind::kLanguageModel;
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

}  // namespace
}  // namespace fovea
