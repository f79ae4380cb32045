// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain/explain.h"

#include <gmock/gmock.h>

#include <numeric>

#include "fovea/task/text_predictor.h"
#include "tests/support/throws.h"
#include "tests/task/untrained_classifier.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<std::string> kLabels = {"bad", "good", "so-so"};

LoadedClassifier classifier(const std::string& encoder = "transformer:layers=2",
                            ClassifierTask task = ClassifierTask::kSingleLabel) {
  return untrained_classifier(task, kLabels, encoder);
}

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

double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(ExplainText, HasTheTokensWeightsAndPredictionOfAClassifier) {
  const LoadedClassifier model = classifier();
  const Explanation e = explain_text(Context(2), model, "abca", {});
  EXPECT_EQ(e.kind, "text classifier");
  EXPECT_THAT(e.tokens, ElementsAre("a", "b", "c", "a"));
  ASSERT_THAT(e.layers, SizeIs(2));
  EXPECT_THAT(e.layers[1].weights, SizeIs(2 * 4 * 4));
  EXPECT_NEAR(sum_of(e.layers[1].weights), 8, 1e-5);
  EXPECT_THAT(e.layers[0].entropy, SizeIs(2));
  TextPredictor predictor(Context(1), model);
  const NamedText text{"abca", "text"};
  const Rows<const float> predicted = predictor.predict({&text, 1});
  ASSERT_THAT(e.prediction, SizeIs(3));
  for (const auto& [label, probability] : e.prediction) {
    const auto k = std::find(kLabels.begin(), kLabels.end(), label) - kLabels.begin();
    EXPECT_EQ(probability, double{predicted[0][k]}) << label;
  }
  EXPECT_GE(e.prediction[0].probability, e.prediction[1].probability);
  EXPECT_THAT(e.saliency.values, SizeIs(4));
  EXPECT_THAT(e.saliency.of.english, HasSubstr("the logit of \"" + e.prediction[0].label + "\""));
}

TEST(ExplainText, HasTheSameBitsForAnyNumberOfThreads) {
  const LoadedClassifier classes = classifier("conv3,attention,bilstm:16");
  const LoadedLanguageModel next = language_model();
  const auto numbers = [&](int threads) {
    std::vector<float> all;
    for (const Explanation& e : {explain_text(Context(threads), classes, "abcdefgh", {}),
                                 explain_text(Context(threads), next, "abcdefgh", {})}) {
      for (const ExplainedLayer& layer : e.layers) {
        all.insert(all.end(), layer.weights.begin(), layer.weights.end());
      }
      all.insert(all.end(), e.saliency.values.begin(), e.saliency.values.end());
    }
    return all;
  };
  EXPECT_EQ(numbers(1), numbers(4));
}

// Where one logit says both, what speaks for one class speaks against the other.
TEST(ExplainText, ExplainsTheLabelThatIsAskedFor) {
  const LoadedClassifier model =
      untrained_classifier(ClassifierTask::kBinary, {"bad", "good"}, "attention");
  const Explanation good = explain_text(Context(1), model, "abc", {.target = "good"});
  const Explanation bad = explain_text(Context(1), model, "abc", {.target = "bad"});
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_EQ(good.saliency.values[t], -bad.saliency.values[t]);
    EXPECT_NE(good.saliency.values[t], 0);
  }
  EXPECT_EQ(good.saliency.of.english, "the logit of \"good\"");
  for (const SaliencyMethod method : {SaliencyMethod::kRollout, SaliencyMethod::kNone}) {
    EXPECT_THROWS(explain_text(Context(1), model, "abc", {.saliency = method, .target = "good"}),
                  kOptionValue, "--target: has no effect");
  }
  EXPECT_THROWS(explain_text(Context(1), model, "abc", {.target = "fair"}), kOptionValue,
                "no label fair");
  const LoadedClassifier number =
      untrained_classifier(ClassifierTask::kRegression, {}, "attention");
  const Explanation e = explain_text(Context(1), number, "abc", {});
  EXPECT_FALSE(e.number.empty());
  EXPECT_THAT(e.prediction, SizeIs(0));
  EXPECT_THAT(e.saliency.values, SizeIs(3));
  EXPECT_THROWS(explain_text(Context(1), number, "abc", {.target = "1"}), kOptionValue, "--target");
}

TEST(ExplainText, RolloutIsAShareOfEachToken) {
  const ExplainOptions rollout{.saliency = SaliencyMethod::kRollout};
  for (const PoolingKind pooling :
       {PoolingKind::kMean, PoolingKind::kFirst, PoolingKind::kLast, PoolingKind::kAttention}) {
    LoadedClassifier model = classifier();
    model.settings.model.pooling = pooling;
    model.model = std::make_unique<Classifier>(model.settings.model, 3);
    const Explanation e = explain_text(Context(1), model, "abcd", rollout);
    EXPECT_NEAR(sum_of(e.saliency.values), 1, 1e-5);
    EXPECT_EQ(e.pooling.empty(), pooling != PoolingKind::kAttention);
  }
  const Explanation e = explain_text(Context(1), language_model(), "abcd", rollout);
  EXPECT_NEAR(sum_of(e.saliency.values), 1, 1e-5);
  EXPECT_THAT(explain_text(Context(1), classifier("conv3,attention"), "ab", rollout).notes,
              SizeIs(1));
  const ExplainOptions none{.saliency = SaliencyMethod::kNone};
  EXPECT_THAT(explain_text(Context(1), classifier(), "ab", none).saliency.values, SizeIs(0));
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
  EXPECT_EQ(h.saliency.of.english, "the log-probability of \"h\" as next token");
  EXPECT_NE(h.saliency.values, e.saliency.values);
  EXPECT_THROWS(explain_text(Context(1), model, "abcd",
                             {.saliency = SaliencyMethod::kRollout, .target = "h"}),
                kOptionValue, "--target: has no effect");
  EXPECT_THROWS(explain_text(Context(1), model, "abcd", {.target = "ab"}), kOptionValue,
                "ab is 2 tokens; expected one");
}

TEST(ExplainText, CutsALongTextWhenAsked) {
  const LoadedLanguageModel model = language_model();
  EXPECT_THROWS(explain_text(Context(1), model, "abcdefghab", {}), kShape,
                "has 10 tokens; the model sees at most 8");
  const Explanation e = explain_text(Context(1), model, "abcdefghab", {.truncate = true});
  EXPECT_EQ(e.cut, 2);
  EXPECT_EQ(e.tokens[0], "c");
  LoadedClassifier classes = classifier();
  const Explanation cut = explain_text(Context(1), classes, std::string(30, 'a'), {});
  EXPECT_EQ(cut.cut, 10);
  EXPECT_THAT(cut.tokens, SizeIs(20));
}

TEST(ExplainText, RefusesWhatCannotBeExplained) {
  EXPECT_THROWS(explain_text(Context(1), classifier("conv3"), "ab", {}), kModelWrongKind,
                "no attention");
  EXPECT_THROWS(explain_text(Context(1), classifier(), "", {}), kInputTooSmall, "no token");
  EXPECT_THROWS(explain_text(Context(1), language_model(), "", {}), kInputTooSmall, "no token");
  EXPECT_THROWS(explain_text(Context(1), classifier(), "a\xff", {}), kEncoding, "text:1:2");
  LoadedClassifier numbers = classifier();
  numbers.settings.text.input = InputKind::kNpz;
  EXPECT_THROWS(explain_text(Context(1), numbers, "ab", {}), kModelWrongKind, "reads numbers");
}

}  // namespace
}  // namespace fovea
