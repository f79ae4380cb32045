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
using testing::FloatNear;

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
  Explanation explanation{.kind = {"language model", "语言模型"}, .tokens = {"a", "b"}};
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
  Explanation explanation{.kind = {"language model", "语言模型"}, .tokens = {"a", "b"}};
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
  Explanation explanation{.kind = {"language model", "语言模型"}, .tokens = {"a", "b"}};
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

TEST(ExplainParts, OrderTheLargestFirst) {
  const std::vector<float> values = {.1F, .5F, .5F, .2F};
  EXPECT_THAT(descending({values.data(), 4}), ElementsAre(1, 2, 3, 0));
}

// The layer has two sequences with two heads each.
TEST(ExplainParts, TheStrongestWeightIsThatOfAllSequences) {
  const ExplainedLayer layer{.name = "layer 1",
                             .heads = 2,
                             .queries = 2,
                             .keys = 2,
                             .weights = {.5F, .5F, .4F, .6F, 1, 0, 0, 1,  // sequence 0
                                         .3F, .7F, .5F, .5F, 0, 1, .9F, .1F},
                             .sequences = 2};
  const StrongestWeight first = strongest_weight(layer, 1);
  EXPECT_THAT((std::vector<index>{first.sequence, first.query, first.key}), ElementsAre(1, 0, 1));
  const StrongestWeight second = strongest_weight(layer, 2);
  EXPECT_EQ(second.sequence, 0);
}

TEST(ExplainParts, RefuseWhatHasNoMeaning) {
  for (const SaliencyMethod method : {SaliencyMethod::kRollout, SaliencyMethod::kNone}) {
    EXPECT_THROWS(require_shown(false, method), kOptionValue, "no attention");
    EXPECT_NO_THROW(require_shown(true, method));
  }
  EXPECT_NO_THROW(require_shown(false, SaliencyMethod::kGradient));
  EXPECT_THROWS(require_tokens(false), kInputTooSmall, "no token");
  EXPECT_THROWS(require_target_counts({.saliency = SaliencyMethod::kNone, .target = "a"}),
                kOptionValue, "--target: has no effect");
  EXPECT_NO_THROW(require_target_counts({.target = "a"}));
  EXPECT_EQ(in_quotes("a\n"), "\"a\\n\"");
  EXPECT_EQ(in_quotes(std::string(10'000, 'x')), '"' + std::string(37, 'x') + "...\"");
}

// Where another command would name its option, `explain` has a hint of its own.
TEST(ExplainParts, HintsNameNoOptionOfOtherCommands) {
  const auto hint_of = [](const std::string& given) {
    try {
      with_own_hint("another",
                    [&]() -> int { throw Error(ErrorCode::kInputFormat, "bad", given); });
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "bad");
      return error.hint();
    }
    return std::string();
  };
  EXPECT_EQ(hint_of("say --word-column"), "another");
  EXPECT_EQ(hint_of("give more"), "give more");
  EXPECT_EQ(with_own_hint("another", [] { return 3; }), 3);
}

TEST(ExplainParts, WordsAreFilledOnce) {
  const std::string text(100, 'x');
  const QuotingWords words{"{0} of {1}", "{1} 的 {0}", {"{1}", text}};
  const Words whole = filled(words, QuoteLength::kWhole), cut = filled(words, QuoteLength::kShort);
  EXPECT_EQ(whole.english, "\"{1}\" of \"" + text + "\"");
  EXPECT_EQ(whole.chinese, "\"" + text + "\" 的 \"{1}\"");
  EXPECT_EQ(cut.english, "\"{1}\" of \"" + std::string(37, 'x') + "...\"");
}

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
