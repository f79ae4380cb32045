// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "fovea/task/language_model/language_model.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

LoadedLanguageModel language_model() {
  LoadedLanguageModel loaded;
  const TokenizerKind& kind = tokenizer_kind("char");
  loaded.tokenizer = kind.make(kind.learn("abcdefgh", "text", {}));
  LanguageModelConfig& c = loaded.settings.model;
  c.layers = 2;
  c.heads = 2;
  c.width = 16;
  c.block = 8;
  c.init = InitScheme::kSource;
  c.vocabulary = loaded.tokenizer->vocabulary_size();
  loaded.model = std::make_unique<LanguageModel>(c, 3);
  return loaded;
}

TEST(ExplainText, PredictsTheNextTokenOfALanguageModel) {
  const LoadedLanguageModel model = language_model();
  const Explanation e = explain_text(Context(1), model, "abcd", {});
  EXPECT_THAT(e.tokens, ElementsAre("a", "b", "c", "d"));
  ASSERT_THAT(e.prediction, SizeIs(5));
  EXPECT_THAT(e.layers, SizeIs(2));
  EXPECT_EQ(e.layers[0].weights[1], 0);  // a later token
  LanguageModelDecoder decoder(Context(1), *model.model);
  const std::vector<token> ids = model.tokenizer->encode("abcd");
  const Vec<const float> logits = decoder.append({ids.data(), 4});
  const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
  const token id = static_cast<token>(best);
  EXPECT_EQ(e.prediction[0].label, model.tokenizer->decode({&id, 1}));
  const Explanation h = explain_text(Context(1), model, "abcd", {.target = "h"});
  EXPECT_EQ(filled(h.saliency.of, QuoteLength::kShort).english,
            "the log-probability of \"h\" as next token");
  EXPECT_NE(h.saliency.values, e.saliency.values);
  EXPECT_THROWS(explain_text(Context(1), model, "abcd",
                             {.saliency = SaliencyMethod::kRollout, .target = "h"}),
                kOptionValue, "--target: has no effect");
  EXPECT_THROWS(explain_text(Context(1), model, "abcd", {.target = "ab"}), kOptionValue,
                "ab is 2 tokens; expected one");
}

TEST(ExplainText, HasTheSameBitsOfALanguageModelForAnyNumberOfThreads) {
  const LoadedLanguageModel model = language_model();
  const auto numbers = [&](int threads) {
    const Explanation e = explain_text(Context(threads), model, "abcdefgh", {});
    std::vector<float> all = e.saliency.values;
    for (const ExplainedLayer& layer : e.layers) {
      all.insert(all.end(), layer.weights.begin(), layer.weights.end());
    }
    return all;
  };
  EXPECT_EQ(numbers(1), numbers(4));
}

TEST(ExplainText, RolloutOfALanguageModelSumsToOne) {
  const Explanation e =
      explain_text(Context(1), language_model(), "abcd", {.saliency = SaliencyMethod::kRollout});
  EXPECT_NEAR(std::accumulate(e.saliency.values.begin(), e.saliency.values.end(), 0.0), 1, 1e-5);
}

TEST(ExplainText, CutsALongTextOfALanguageModelWhenAsked) {
  const LoadedLanguageModel model = language_model();
  EXPECT_THROWS(explain_text(Context(1), model, "abcdefghab", {}), kShape,
                "has 10 tokens; the model sees at most 8");
  const Explanation e = explain_text(Context(1), model, "abcdefghab", {.truncate = true});
  EXPECT_EQ(e.cut, 2);
  EXPECT_EQ(e.tokens[0], "c");
  EXPECT_THROWS(explain_text(Context(1), model, "", {}), kInputTooSmall, "no token");
}

}  // namespace
}  // namespace fovea
