// SPDX-License-Identifier: Apache-2.0
#include "fovea/explain/observed_text.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "fovea/model/classifier.h"
#include "fovea/model/language_model.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using testing::ElementsAre;

constexpr index kTokens = 5;
const std::int32_t kIds[] = {1, 5, 2, 0, 4}, kOffsets[] = {0, kTokens};

Parameter& table_of(std::span<Parameter* const> parameters) {
  for (Parameter* const p : parameters) {
    if (p->name == "embedding.tokens") return *p;
  }
  fail(ErrorCode::kInternal, "no table");
}

// The saliency against central differences of the table's rows: every token occurs once.
void expect_saliency(const ObservedText& text, Parameter& table,
                     const std::function<Variable(Tape&, Variable)>& of) {
  Tape tape(Context(2), TapeMode::kInference);
  const auto value = [&] {
    ++table.version;
    tape.reset(TapeMode::kInference);
    return of(tape, text.logits(tape, {}, nullptr)).value<double>()[0][0];
  };
  const std::vector<float> saliency =
      gradient_saliency(tape, text, SaliencyMethod::kGradientInput,
                        [&](Variable logits) { return of(tape, logits); });
  const std::vector<float> lengths = gradient_saliency(
      tape, text, SaliencyMethod::kGradient, [&](Variable logits) { return of(tape, logits); });
  const Rows<double> rows = table.value.rows<double>();
  double largest = 0;
  for (index t = 0; t < kTokens; ++t) {
    double wanted = 0, square = 0;
    for (index c = 0; c < rows.columns; ++c) {
      double& e = rows[kIds[t]][c];
      const double kept = e, step = 1e-5;
      e = kept + step;
      const double above = value();
      e = kept - step;
      const double below = value();
      e = kept;
      const double slope = (above - below) / (2 * step);
      wanted += kept * slope;
      square += slope * slope;
    }
    largest = std::max(largest, std::abs(wanted));
    EXPECT_NEAR(saliency[static_cast<std::size_t>(t)], wanted, 1e-6 * std::max(1.0, largest));
    EXPECT_NEAR(lengths[static_cast<std::size_t>(t)], std::sqrt(square),
                1e-6 * std::max(1.0, std::sqrt(square)));
  }
  EXPECT_GT(largest, 1e-4);
}

ClassifierConfig classifier_config(const std::string& encoder) {
  ClassifierConfig c;
  c.encoder = encoder;
  c.init = InitScheme::kSource;
  c.width = 8;
  c.heads = 2;
  c.block = 8;
  c.classes = 3;
  c.vocabulary = 6;
  c.dropout = c.output_dropout = 0.5;  // does nothing here
  return c;
}

Variable first_logit(Tape& tape, Variable logits) {
  static const double kFirst[] = {1, 0, 0};
  return linear(tape, logits, tape.constant(Rows<const double>(kFirst, 1, 3)));
}

TEST(ObservedText, SaliencyIsThatOfFiniteDifferences) {
  for (const std::string encoder :
       {"attention", "transformer:layers=2", "conv3,attention", "bilstm:8,attention",
        "sru:8,attention", "gru:8+attention", "attention-rnn:8", "attention:position=rotary"}) {
    SCOPED_TRACE(encoder);
    ClassifierConfig c = classifier_config(encoder);
    c.pooling = encoder == "attention" ? PoolingKind::kAttention : PoolingKind::kMean;
    if (encoder == "transformer:layers=2") c.position = PositionKind::kLearned;
    const Classifier model(c, 3, DType::kFloat64);
    const ObservedText text{.logits =
                                [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
                                  return model.logits(
                                      tape, {.ids = {kIds, kTokens}, .offsets = {kOffsets, 2}},
                                      {.attention = seen, .inputs = inputs});
                                },
                            .layers = {},
                            .tokens = kTokens};
    expect_saliency(text, table_of(model.parameters()), first_logit);
    for (const Parameter* p : model.parameters()) EXPECT_FALSE(p->has_gradient) << p->name;
  }
}

TEST(ObservedText, SaliencyOfTheNextTokenIsThatOfFiniteDifferences) {
  LanguageModelConfig c;
  c.layers = 2;
  c.init = InitScheme::kSource;
  c.width = 8;
  c.heads = 2;
  c.block = 8;
  c.vocabulary = 6;
  c.tie = false;
  const LanguageModel model(c, 3, DType::kFloat64);
  const ObservedText text{.logits =
                              [&](Tape& tape, std::span<HeadStatistics> seen, Variable* inputs) {
                                return model.logits(
                                    tape, {.ids = {kIds, kTokens}, .offsets = {kOffsets, 2}},
                                    {.attention = seen, .inputs = inputs});
                              },
                          .layers = {},
                          .tokens = kTokens};
  const std::int32_t targets[] = {-1, -1, -1, -1, 3};
  expect_saliency(text, table_of(model.parameters()), [&](Tape& tape, Variable logits) {
    return scale(tape, cross_entropy(tape, logits, {.ids = {targets, kTokens}}), -1);
  });
}

// So that one sees which words a model does not know.
TEST(ObservedText, WritesUnknownWordsAsTheTextHasThem) {
  const TokenizerKind& kind = tokenizer_kind("word");
  const auto tokenizer =
      kind.make(kind.learn("a a b b", "text", {.split = WordSplit::kPunctuation}));
  const auto written = [&](std::size_t first, std::size_t count, bool at_end) {
    const std::vector<token> all = tokenizer->encode("a zebra, b Quagga", "text");
    const std::span<const token> ids = std::span(all).subspan(first, count);
    std::vector<std::string> texts = token_texts(*tokenizer, ids);
    write_unknown(*tokenizer, ids, "a zebra, b Quagga", at_end, texts);
    return texts;
  };
  EXPECT_THAT(written(0, 5, false), ElementsAre("a", "zebra", ",", "b", "Quagga"));
  EXPECT_THAT(written(0, 2, false), ElementsAre("a", "zebra"));
  EXPECT_THAT(written(3, 2, true), ElementsAre("b", "Quagga"));
}

// Logits and weights that are given.
ObservedText made_of(std::vector<float> weights, float logit,
                     std::vector<AttentionLayerName> layers) {
  return {.logits =
              [=](Tape& tape, std::span<HeadStatistics> seen, Variable*) {
                for (HeadStatistics& one : seen) {
                  EXPECT_TRUE(one.keeps_weights);
                  one.queries = 2;
                  one.entropy = {1};
                  one.distance = {.5};
                  one.weights = weights;
                }
                const Variable y = tape.result(1, 1, DType::kFloat32);
                y.value<float>()[0][0] = logit;
                return y;
              },
          .layers = std::move(layers),
          .tokens = 2};
}

TEST(ObservedText, LayersHaveTheirMeansAndLargestWeights) {
  Explanation explanation{.kind = ExplainedKind::kLanguageModel, .tokens = {"a", "b"}};
  Tape tape(Context(1), TapeMode::kInference);
  const ObservedText text = made_of({1, 0, .25F, .75F}, 2, {{.name = "layer 1", .heads = 1}});
  EXPECT_EQ(observe_layers(tape, text, explanation).value<float>()[0][0], 2);
  ASSERT_EQ(explanation.layers.size(), 1U);
  EXPECT_THAT(explanation.layers[0].entropy, ElementsAre(.5));
  EXPECT_THAT(explanation.layers[0].distance, ElementsAre(.25));
  EXPECT_THAT(explanation.layers[0].largest, ElementsAre(.75));
  const double last[] = {0, 1};
  EXPECT_THAT(rollout_of(text, explanation, last), ElementsAre(.25F, .75F));
}

// As with a sink, or sigmoid weights: what is entropy or distance of a share then?
TEST(ObservedText, LayersWhoseWeightsDoNotSumToOneHaveNoEntropy) {
  Explanation explanation{.kind = ExplainedKind::kLanguageModel, .tokens = {"a", "b"}};
  Tape tape(Context(1), TapeMode::kInference);
  const ObservedText sink = made_of({.5F, 0, .25F, .25F}, 2, {{.name = "layer 1", .heads = 1}});
  observe_layers(tape, sink, explanation);
  EXPECT_THAT(explanation.layers[0].entropy, ElementsAre());
  EXPECT_THAT(explanation.layers[0].distance, ElementsAre());
  EXPECT_THAT(explanation.layers[0].largest, ElementsAre(.25));
  const double last[] = {0, 1};
  EXPECT_THROWS(rollout_of(sink, explanation, last), kOptionValue, "do not sum to 1");
  const ObservedText masked = made_of({0, 0, .25F, .75F}, 2, {{.name = "layer 1", .heads = 1}});
  observe_layers(tape, masked, explanation);
  EXPECT_THAT(explanation.layers[1].entropy, ElementsAre(.5));
}

TEST(ObservedText, RefusesWhatCannotBeExplained) {
  Explanation explanation{.kind = ExplainedKind::kLanguageModel, .tokens = {"a", "b"}};
  Tape tape(Context(1), TapeMode::kInference);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROWS(observe_layers(tape, made_of({1, 0, 0, 1}, nan, {}), explanation), kModelDamaged,
                "not finite");
  const ObservedText beside =
      made_of({1, 0, 0, 1}, 0, {{.name = "layer 1", .heads = 1, .side_by_side = true}});
  observe_layers(tape, beside, explanation);
  const double last[] = {0, 1};
  EXPECT_THROWS(rollout_of(beside, explanation, last), kOptionValue, "side by side");
  explanation.layers[0].entropy.clear();
  const ObservedText alone = made_of({1, 0, 0, 1}, 0, {{.name = "layer 1", .heads = 1}});
  EXPECT_THROWS(rollout_of(alone, explanation, last), kOptionValue, "do not sum to 1");
  ObservedText large = alone;
  large.tokens = index{1} << 24;
  EXPECT_THROWS(require_explain_memory(large), kOutOfMemory, "the weights of 16777216 tokens");
}

}  // namespace
}  // namespace fovea
