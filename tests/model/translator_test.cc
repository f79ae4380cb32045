// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fovea/reference/gradcheck.h"
#include "tests/model/translator_support.h"
#include "tests/support/part_range.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

struct Case {
  std::string name;
  TranslatorConfig config;
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

Case with(std::string name, void (*change)(TranslatorConfig&)) {
  Case made{std::move(name), translator_config()};
  change(made.config);
  return made;
}

// Every position on both sides, and every choice of norms, tables and layers.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& [kind, name] : enum_names(PositionKind{})) {
    Case one{std::string(name), translator_config()};
    one.config.position = kind;
    one.config.t5_buckets = 4;
    one.config.shaw_clip = 2;
    if (all.size() % 2 == 0) one.config.norm_position = NormPosition::kPost;
    if (all.size() % 3 == 0) one.config.dropout = 0.2;
    all.push_back(one);
  }
  using C = TranslatorConfig;
  all.push_back(with("shared table", [](C& c) {
    c.share_embeddings = true;
    c.target_vocabulary = c.vocabulary;
  }));
  all.push_back(with("one table, untied", [](C& c) {
    c.share_embeddings = true;
    c.target_vocabulary = c.vocabulary;
    c.tie = false;
    c.norm_position = NormPosition::kPost;
  }));
  all.push_back(with("untied, without biases", [](C& c) {
    c.tie = c.bias = false;
    c.norm = NormKind::kRms;
  }));
  all.push_back(with("tied, with a bias of the logits", [](C& c) {
    c.logits_bias = true;
    c.norm_position = NormPosition::kPost;
    c.sinusoid = SinusoidOrder::kSinCos;
    c.activation = LayerActivation::kSilu;
    c.embedding_scale = 1;
  }));
  all.push_back(with("all layers share their distances", [](C& c) {
    c.position = *find_enum<PositionKind>("t5");
    c.t5_buckets = 4;
    c.shares_distances = true;
    c.encoder_layers = c.decoder_layers = 2;
    c.score_scale = 1;
    c.output_scale = 0.4;
  }));
  all.push_back(with("other positions in the decoder", [](C& c) {
    c.decoder_position = "none";
    c.position = PositionKind::kLearned;
  }));
  all.push_back(with("grouped heads, qk-norm", [](C& c) {
    c.kv_heads = 1;
    c.qk_norm = c.sink = true;
  }));
  all.push_back(with("another encoder", [](C& c) {
    c.encoder = "conv3:activation=gelu,bilstm:3";
    c.decoder_layers = 2;
  }));
  all.push_back(with("additive attention", [](C& c) {
    c.score = AttentionScoreKind::kAdditive;
    c.position = PositionKind::kNone;
  }));
  all.push_back(with("GRU", [](C& c) { c = recurrent_config(); }));
  all.push_back(with("GRU, one table, dropout", [](C& c) {
    c = recurrent_config();
    c.share_embeddings = true;
    c.target_vocabulary = c.vocabulary;
    c.encoder = "bilstm:3";
    c.dropout = 0.2;
  }));
  all.push_back(with("GRU, untied, without biases", [](C& c) {
    c = recurrent_config();
    c.tie = c.bias = false;
  }));
  return all;
}

class EveryTranslator : public testing::TestWithParam<Case> {};

TEST_P(EveryTranslator, GradientIsThatOfTheLoss) {
  const Translator model(GetParam().config, 1, DType::kFloat64);
  for (Parameter* p : model.parameters()) {  // a fresh model is too flat to tell errors apart
    Random random(3, RandomUse::kTest, static_cast<std::uint64_t>(p->value.size()));
    const double least = has_range(p->name) ? 0.1 : -0.7;
    for (double& x : p->value.vec<double>()) x = random.uniform(least, 0.7);
    ++p->version;
  }
  const OwnedPairs batch({{3, 4}, {1, 2}}, model.config());
  const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
    return model.loss(tape, batch.view(), {.scale = 0.2, .smoothing = 0.1, .dropout = {1, 2, 0}});
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

std::vector<float> logits_of(const Translator& model, const TranslationBatch& batch, int threads) {
  Tape tape(Context(threads), TapeMode::kInference);
  return to_vector(model.logits(tape, batch).value<float>());
}

TEST_P(EveryTranslator, SaysTheSameOfAPairAloneAndAmongOthers) {
  const Translator model(GetParam().config, 1);
  const OwnedPairs all({{4, 3}, {2, 6}, {8, 5}}, model.config());
  const std::vector<float> together = logits_of(model, all.view(), 2);
  EXPECT_EQ(logits_of(model, all.view(), 1), together);
  TranslationBatch last = all.view();
  const std::int32_t from[] = {0, 8}, to[] = {0, 5};
  last.source = {.ids = {last.source.ids.data + 6, 8}, .offsets = {from, 2}};
  last.target = {.ids = {last.target.ids.data + 9, 5}, .offsets = {to, 2}};
  const index V = model.config().target_vocabulary;
  EXPECT_EQ(logits_of(model, last, 2),
            std::vector<float>(together.begin() + 9 * V, together.end()));
}

// The decoder must not see the tokens that it predicts; it must see the source.
TEST_P(EveryTranslator, SeesThePastOfTheTargetAndAllOfTheSource) {
  const Translator model(GetParam().config, 1);
  OwnedPairs batch({{4, 5}}, model.config());
  const std::vector<float> before = logits_of(model, batch.view(), 1);
  const auto V = static_cast<std::ptrdiff_t>(model.config().target_vocabulary);
  batch.target[3] = (batch.target[3] + 1) % static_cast<std::int32_t>(V);
  const std::vector<float> later = logits_of(model, batch.view(), 1);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 3 * V, later.begin()));
  EXPECT_FALSE(std::equal(before.begin() + 3 * V, before.end(), later.begin() + 3 * V));
  batch.source[3] = (batch.source[3] + 1) % static_cast<std::int32_t>(model.config().vocabulary);
  const std::vector<float> other = logits_of(model, batch.view(), 1);
  EXPECT_FALSE(std::equal(later.begin(), later.begin() + V, other.begin()));
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryTranslator, testing::ValuesIn(cases()));

TEST(Translator, OneTableServesBothSidesAndTheOutput) {
  TranslatorConfig c = translator_config();
  const auto count = [](const Translator& model) { return model.parameters().size(); };
  const Translator apart(c, 1);
  c.share_embeddings = true;
  c.target_vocabulary = c.vocabulary;
  const Translator one(c, 1);
  EXPECT_EQ(count(one), count(apart) - 1);
  EXPECT_EQ(one.parameters()[0]->name, "encoder.embedding.tokens");
}

TEST(Translator, AttentionToTheSourceIsObserved) {
  const Translator model(translator_config(), 1);
  const OwnedPairs batch({{4, 3}}, model.config());
  ASSERT_EQ(model.attentions(), 3);  // one of the encoder, two of the decoder's layer
  std::vector<HeadStatistics> seen(3);
  for (HeadStatistics& one : seen) one.keeps_weights = true;
  Tape tape(Context(1), TapeMode::kInference);
  model.logits(tape, batch.view(), {.attention = seen});
  const HeadStatistics& cross = seen[static_cast<std::size_t>(model.cross_attention(0))];
  ASSERT_EQ(cross.weights.size(), 2u * 3 * 4);
  float sum = 0;
  for (std::size_t m = 0; m < 4; ++m) sum += cross.weights[m];
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_THROWS(model.cross_attention(1), kShape, "no layer 1 of 1");
}

TEST(Translator, NamesWhatDoesNotFitTogether) {
  const Translator model(translator_config(), 1);
  const OwnedPairs long_source({{13, 2}}, model.config()), two({{2, 2}, {3, 1}}, model.config());
  Tape tape(Context(1));
  EXPECT_THROWS(model.loss(tape, long_source.view()), kShape, "at most 12");
  TranslationBatch batch = two.view();
  batch.source.offsets.size = 2;
  batch.source.ids.size = 2;
  batch.source.samples.size = 1;
  EXPECT_THROWS(model.loss(tape, batch), kShape, "1 sentences of the source, 2 of the target");
  batch = two.view();
  batch.targets.size = 1;
  EXPECT_THROWS(model.loss(tape, batch), kShape, "1 targets for 3 tokens");
  EXPECT_EQ(model.loss(tape, {}).value<float>()[0][0], 0);
}

// Spec L18: the gradient reaches the first layers of deep stacks.
TEST(Translator, ADeepStackPassesGradientsOn) {
  TranslatorConfig c = translator_config();
  c.encoder_layers = c.decoder_layers = 12;
  const Translator model(c, 1);
  const OwnedPairs batch({{4, 3}}, model.config());
  Tape tape(Context(1));
  tape.backward(model.loss(tape, batch.view()));
  for (Parameter* p : model.parameters()) {
    if (p->name != "encoder.blocks.0.attention.out.weight" &&
        p->name != "decoder.blocks.0.cross.q.weight") {
      continue;
    }
    double norm = 0;
    for (const float x : p->finished_gradient().vec<float>()) norm += double{x} * double{x};
    EXPECT_GT(norm, 0) << p->name;
  }
}

}  // namespace
}  // namespace fovea
