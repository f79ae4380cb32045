// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "fovea/explain/explanation.h"
#include "fovea/explain/shown.h"
#include "fovea/task/translate/evaluate.h"
#include "fovea/task/translate/line_translator.h"
#include "fovea/task/translate/translator.h"
#include "tests/support/throws.h"
#include "tests/task/translate/tiny.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

void recurrent(TranslatorConfig& c) {
  c.kind = TranslatorKind::kBahdanauGru;
  c.encoder_layers = TranslatorConfig().encoder_layers;
  c.decoder_layers = TranslatorConfig().decoder_layers;
}

Explanation explain(const LoadedTranslator& model, std::string_view text,
                    const ExplainOptions& options = {}, int threads = 2) {
  return explain_text(Context(threads), model, text, options);
}

// The pair as the model reads it: a source with its end, and a target behind its begin mark.
struct Pair {
  std::vector<token> source, target;

  Pair(const LoadedTranslator& model, std::string_view from, std::string_view to)
      : source(model.vocabulary.source().encode(from)),
        target{model.vocabulary.target().special().begin} {
    source.push_back(model.vocabulary.source().special().end);
    model.vocabulary.target().append_tokens(target, to, "target");
  }
};

std::vector<HeadStatistics> observed(const LoadedTranslator& model, const Pair& pair) {
  std::vector<HeadStatistics> seen(static_cast<std::size_t>(model.model->attentions()));
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  const std::int32_t from[] = {0, static_cast<std::int32_t>(pair.source.size())},
                     to[] = {0, static_cast<std::int32_t>(pair.target.size())};
  Tape tape(Context(1), TapeMode::kInference);
  model.model->logits(tape,
                      {.source = {.ids = {pair.source.data(), from[1]}, .offsets = {from, 2}},
                       .target = {.ids = {pair.target.data(), to[1]}, .offsets = {to, 2}}},
                      {.attention = seen});
  return seen;
}

void expect_rows_sum_to_one(const ExplainedLayer& layer) {
  for (index head = 1; head <= layer.heads; ++head) {
    for (index query = 0; query < layer.queries; ++query) {
      const std::span<const float> row = layer.head(head).row(query);
      EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5) << layer.name;
    }
  }
}

TEST(ExplainTranslator, HasTheWeightsOfATeacherForcedForward) {
  for (void (*change)(TranslatorConfig&) : {+[](TranslatorConfig&) {}, &recurrent}) {
    const LoadedTranslator model = untrained_translator(change);
    const Explanation e = explain(model, "abcde", {.target = "uvw"});
    EXPECT_EQ(e.kind.english, "translator");
    EXPECT_THAT(e.tokens, ElementsAre("a", "b", "c", "d", "e", "</s>"));
    EXPECT_THAT(e.translation->tokens, ElementsAre("u", "v", "w", "</s>"));
    EXPECT_TRUE(e.translation->is_given);
    const auto seen = observed(model, Pair(model, "abcde", "uvw"));
    ASSERT_EQ(e.layers.size(), seen.size());
    for (std::size_t n = 0; n < seen.size(); ++n) {
      const ExplainedLayer& layer = e.layers[n];
      EXPECT_EQ(layer.weights, seen[n].weights) << layer.name;
      EXPECT_EQ(layer.queries, layer.place == AttentionPlace::kText ? 6 : 4) << layer.name;
      EXPECT_EQ(layer.keys, layer.place == AttentionPlace::kDecoder ? 4 : 6) << layer.name;
      EXPECT_EQ(static_cast<index>(layer.entropy.size()), layer.heads);
      EXPECT_EQ(layer.distance.empty(), layer.place == AttentionPlace::kCross);
      expect_rows_sum_to_one(layer);
    }
  }
}

TEST(ExplainTranslator, NamesItsLayers) {
  std::vector<std::string> names;
  for (const ExplainedLayer& layer : explain(untrained_translator(), "ab").layers) {
    names.push_back(layer.name);
  }
  EXPECT_THAT(names, ElementsAre("encoder 1 (transformer)", "decoder 1 (self-attention)",
                                 "decoder 1 (cross-attention)", "decoder 2 (self-attention)",
                                 "decoder 2 (cross-attention)"));
  const Explanation gru = explain(untrained_translator(recurrent), "ab");
  ASSERT_THAT(gru.layers, SizeIs(1));
  EXPECT_EQ(gru.layers[0].name, "decoder (additive attention)");
  EXPECT_EQ(gru.main_layer, 1);
}

// What `translate --alignments` prints: the key with the most weight in the mean of the heads of
// the layer that is shown first, without the end.
TEST(ExplainTranslator, ShowsTheTranslationAndAlignmentOfTranslate) {
  for (void (*change)(TranslatorConfig&) : {+[](TranslatorConfig&) {}, &recurrent}) {
    const LoadedTranslator model = untrained_translator(change);
    for (const std::string text : {"abc", "fed cab", "a"}) {
      TranslationOptions options;
      options.alignments = true;
      LineTranslator translator(Context(1), *model.model, model.vocabulary, options, "test");
      translator.add({text, 1});
      const TranslatedText made = translator.translate()[0][0];
      const Explanation e = explain(model, text);
      EXPECT_EQ(e.translation->text, made.text);
      EXPECT_FALSE(e.translation->is_given);
      EXPECT_NEAR(e.translation->log_probability, made.log_probability,
                  1e-4 * std::max(1.0, std::abs(made.log_probability)));
      ASSERT_EQ(static_cast<index>(e.translation->tokens.size()), made.tokens);
      const ExplainedLayer& layer = e.layers[static_cast<std::size_t>(*e.main_layer - 1)];
      EXPECT_EQ(layer.place, AttentionPlace::kCross);
      std::vector<std::pair<index, index>> links;
      for (index query = 0; query + 1 < layer.queries; ++query) {
        std::vector<double> mean(static_cast<std::size_t>(layer.keys - 1));
        for (index head = 1; head <= layer.heads; ++head) {
          const std::span<const float> row = layer.head(head).row(query);
          for (std::size_t key = 0; key < mean.size(); ++key) {
            mean[key] += double{row[key]} / static_cast<double>(layer.heads);
          }
        }
        links.emplace_back(std::max_element(mean.begin(), mean.end()) - mean.begin(), query);
      }
      EXPECT_EQ(links, made.alignment) << text;
    }
  }
}

// Forced decoding: the numbers of `eval --score`.
TEST(ExplainTranslator, TheProbabilitiesAreThoseOfForcedDecoding) {
  const LoadedTranslator model = untrained_translator();
  const Explanation e = explain(model, "abc", {.target = "zyx"});
  SentencePairs pairs;
  pairs.source = {"abc"};
  pairs.target = {"zyx"};
  const TranslatorScore score = evaluate_translator(Context(1), model, pairs);
  EXPECT_EQ(e.translation->log_probability, score.scores[0].log_probability);
  double sum = 0;
  for (const double p : e.translation->probabilities) sum += std::log(p);
  EXPECT_NEAR(sum, score.scores[0].log_probability, 1e-9 * std::abs(sum) + 1e-9);
}

// The value that is explained, of a model in float64 with one row of its table of tokens moved.
double value_at(const Translator& model, const Pair& pair, index only, token end) {
  const std::int32_t from[] = {0, static_cast<std::int32_t>(pair.source.size())},
                     to[] = {0, static_cast<std::int32_t>(pair.target.size())};
  std::vector<std::int32_t> targets(pair.target.begin() + 1, pair.target.end());
  targets.push_back(end);
  for (std::size_t n = 0; n < targets.size(); ++n) {
    if (only > 0 && static_cast<index>(n) != only - 1) targets[n] = -1;
  }
  Tape tape(Context(1), TapeMode::kInference);
  const Variable logits =
      model.logits(tape, {.source = {.ids = {pair.source.data(), from[1]}, .offsets = {from, 2}},
                          .target = {.ids = {pair.target.data(), to[1]}, .offsets = {to, 2}}});
  return -cross_entropy(tape, logits, {.ids = {targets.data(), to[1]}}).value<double>()[0][0];
}

TEST(ExplainTranslator, SaliencyIsThatOfFiniteDifferences) {
  for (void (*change)(TranslatorConfig&) : {+[](TranslatorConfig&) {}, &recurrent}) {
    LoadedTranslator model = untrained_translator(change);
    Translator exact(model.model->config(), 3, DType::kFloat64);
    for (std::size_t n = 0; n < exact.parameters().size(); ++n) {
      const Vec<float> from = model.model->parameters()[n]->value.vec<float>();
      std::copy(from.begin(), from.end(), exact.parameters()[n]->value.vec<double>().begin());
    }
    Parameter* table = nullptr;
    for (Parameter* p : exact.parameters()) {
      if (p->name == "encoder.embedding.tokens") table = p;
    }
    ASSERT_NE(table, nullptr);
    const Pair pair(model, "abcd", "uvw");
    const token end = model.vocabulary.target().special().end;
    for (const index only : {index{0}, index{2}}) {
      const Explanation e = explain(model, "abcd", {.target = "uvw", .token = only});
      ASSERT_EQ(e.saliency.values.size(), pair.source.size());
      EXPECT_EQ(e.token, only);
      for (std::size_t t = 0; t < pair.source.size(); ++t) {
        double wanted = 0;
        const Rows<double> rows = table->value.rows<double>();
        for (index c = 0; c < rows.columns; ++c) {
          double& x = rows[pair.source[t]][c];
          const double kept = x, step = 1e-5;
          const auto moved = [&](double to) {
            x = to;
            ++table->version;
            return value_at(exact, pair, only, end);
          };
          wanted += kept * (moved(kept + step) - moved(kept - step)) / (2 * step);
          x = kept;
        }
        EXPECT_NEAR(e.saliency.values[t], wanted, 2e-3 * std::max(1.0, std::abs(wanted))) << t;
      }
    }
  }
}

TEST(ExplainTranslator, SaysWhatTheSaliencyIsOf) {
  const LoadedTranslator model = untrained_translator();
  const auto of = [&](const ExplainOptions& options) {
    return filled(explain(model, "ab", options).saliency.of, QuoteLength::kShort).english;
  };
  EXPECT_EQ(of({}), "the log-probability of the translation");
  EXPECT_EQ(of({.target = "uv", .token = 2}),
            "the log-probability of token 2 of the translation, \"v\"");
  EXPECT_EQ(of({.target = "uv", .token = 3}),
            "the log-probability of token 3 of the translation, \"</s>\"");
  EXPECT_THAT(explain(model, "ab", {.saliency = SaliencyMethod::kNone}).saliency.values, SizeIs(0));
}

TEST(ExplainTranslator, HasTheSameBitsForAnyNumberOfThreads) {
  const LoadedTranslator model = untrained_translator();
  const auto numbers = [&](int threads) {
    const Explanation e = explain(model, "abcdef", {}, threads);
    std::vector<float> all = e.saliency.values;
    for (const ExplainedLayer& layer : e.layers) {
      all.insert(all.end(), layer.weights.begin(), layer.weights.end());
    }
    return all;
  };
  EXPECT_EQ(numbers(1), numbers(3));
}

TEST(ExplainTranslator, ShowsUnknownWordsOfBothSides) {
  LoadedTranslator model = untrained_translator();
  const TokenizerKind& kind = tokenizer_kind("word");
  model.vocabulary.of_source = kind.make(kind.learn("one two one two", "text", {}));
  model.vocabulary.of_target = kind.make(kind.learn("eins eins", "text", {}));
  const Explanation e = explain(model, "one zebra two", {.target = "eins Katze"});
  EXPECT_THAT(e.tokens, ElementsAre("one", "zebra", "two", "</s>"));
  EXPECT_THAT(e.translation->tokens, ElementsAre("eins", "Katze", "</s>"));
  ASSERT_THAT(e.notes, SizeIs(2));
  EXPECT_THAT(e.notes[0].english, HasSubstr("1 of 3 tokens are words"));
  EXPECT_THAT(e.notes[1].english, HasSubstr("1 of 2 tokens of the translation are words"));
  EXPECT_THAT(e.notes[1].chinese, HasSubstr("译文的 2 个词元中有 1 个"));
}

TEST(ExplainTranslator, RefusesWhatCannotBeExplained) {
  const LoadedTranslator model = untrained_translator();
  const auto explained = [&](std::string_view text, const ExplainOptions& options = {}) {
    return explain(model, text, options);
  };
  EXPECT_THROWS(explained(""), kInputTooSmall, "no token");
  EXPECT_THROWS(explained("ab\ncd"), kInputFormat, "expected one line to translate, got 2");
  EXPECT_THROWS(explained(std::string(24, 'a')), kShape, "24 tokens; the model reads at most 23");
  EXPECT_NO_THROW(explained(std::string(23, 'a')));
  EXPECT_THROWS(explained("ab", {.target = std::string(24, 'u')}), kOptionValue,
                "--target: it has 24 tokens; the model writes at most 23");
  EXPECT_NO_THROW(explained("ab", {.target = std::string(23, 'u')}));
  EXPECT_THROWS(explained("ab", {.target = "\xff"}), kEncoding, "--target");
  EXPECT_THROWS(explained("ab", {.target = "u", .token = 3}), kOptionValue, "--token: 3");
  EXPECT_THROWS(explained("ab", {.saliency = SaliencyMethod::kRollout}), kOptionValue,
                "--saliency rollout");
}

TEST(ExplainTranslator, APageHasEveryMap) {
  const LoadedTranslator model = untrained_translator();
  const Explanation e = explain(model, "abc", {.target = "uv"});
  const AttentionPage page = page_of(e, "de", PageLanguage::kChinese);
  ASSERT_THAT(page.maps, SizeIs(5));
  EXPECT_EQ(page.first_map, 2U);
  EXPECT_EQ(page.maps[2].name, "解码器 1 (交叉注意力)");
  EXPECT_EQ(page.maps[2].rows_are, "译文");
  EXPECT_EQ(page.maps[2].columns_are, "源文");
  EXPECT_FALSE(page.maps[2].has_distances);
  EXPECT_THAT(page.texts[page.maps[1].key_text].tokens, ElementsAre("<s>", "u", "v"));
  EXPECT_THAT(page.texts[page.maps[1].key_text].positions, ElementsAre(0, 1, 2));
  EXPECT_THAT(page.texts[page.maps[1].query_text].tokens, ElementsAre("u", "v", "</s>"));
  EXPECT_THAT(page.texts[page.maps[0].query_text].tokens, ElementsAre("a", "b", "c", "</s>"));
  EXPECT_THAT(draw_attention_page(page), HasSubstr("给定的译文"));
}

TEST(ExplainTranslator, ATerminalShowsRectangularMaps) {
  const LoadedTranslator model = untrained_translator();
  const Explanation e = explain(model, "abcdefabcdef", {.target = "uv"});
  const auto text = [&](const ExplainView& view) { return explanation_text(e, view, {}, 60); };
  EXPECT_THAT(text({}), HasSubstr("given translation: uv\nlog-probability: -"));
  EXPECT_THAT(text({}), HasSubstr("tokens: 13 of the source, 3 of the translation"));
  EXPECT_THAT(text({}), HasSubstr("decoder 1 (cross-attention), mean of 2 heads"));
  EXPECT_THAT(text({.layer = 2}), HasSubstr("\n       > u v   probability\n1 u    @@"));
  EXPECT_THAT(text({.tokens = "3-5"}), HasSubstr("Shown: tokens 3 to 5 of 13 of the source."));
  EXPECT_THAT(text({.layer = 4, .tokens = "0-1"}),
              HasSubstr("Shown: tokens 0 to 1 of 3 of the translation."));
  EXPECT_NO_THROW(check_view({.layer = 4, .tokens = "0-2"}, e));
  EXPECT_THROWS(check_view({.layer = 4, .tokens = "0-3"}, e), kOptionValue, "within 0-2");
  EXPECT_THROWS(check_view({.tokens = "0-3"}, e), kOptionValue, "within 1-13");
}

TEST(AttentionLayers, AreThoseOfATranslator) {
  TranslatorConfig c;
  c.encoder = "conv3,attention:heads=4";
  c.decoder_layers = 3;
  c.width = 16;
  c.heads = 2;
  c.block = 8;
  c.vocabulary = c.target_vocabulary = 9;
  const Translator model(c, 1);
  const auto layers = attention_layers(model.config());
  ASSERT_EQ(static_cast<index>(layers.size()), model.attentions());
  EXPECT_EQ(layers[0].name, "encoder 1 (attention)");
  EXPECT_EQ(layers[0].heads, 4);
  for (index n = 0; n < 3; ++n) {
    const AttentionLayerName& cross = layers[static_cast<std::size_t>(model.cross_attention(n))];
    EXPECT_EQ(cross.place, AttentionPlace::kCross);
    EXPECT_EQ(cross.name, fmt::format("decoder {} (cross-attention)", n + 1));
    EXPECT_EQ(cross.heads, 2);
  }
}

}  // namespace
}  // namespace fovea
