// SPDX-License-Identifier: Apache-2.0
// BERT's layers. That they compute what transformers computes is shown by tests/cli/test_embed.py.
#include "fovea/model/bert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/grad/ops.h"
#include "fovea/model/classifier.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/tagger.h"
#include "fovea/reference/gradcheck.h"

namespace fovea {
namespace {

BertConfig small_config() {
  return {.vocabulary = 7, .width = 4, .layers = 2, .heads = 2, .ff = 6, .block = 5, .pools = true};
}

const std::int32_t kIds[] = {3, 1, 4, 1, 5, 6, 2}, kTypes[] = {0, 0, 1, 1, 0, 1, 1},
                   kOffsets[] = {0, 4, 7};

BertBatch batch() {
  return {.texts = {.ids = {kIds, 7}, .offsets = {kOffsets, 3}}, .types = {kTypes, 7}};
}

TEST(Bert, HasTheParametersOfBertBase) {
  const Bert base({.vocabulary = 30522,
                   .width = 768,
                   .layers = 12,
                   .heads = 12,
                   .ff = 3072,
                   .block = 512,
                   .pools = true},
                  {.memory = ParameterMemory::kShapesOnly});
  index held = 0, vectors = 0;
  for (const Parameter* parameter : base.parameters()) {
    ++held;
    vectors += parameter->decay == Decay::kNo ? 1 : 0;
  }
  EXPECT_EQ(held, 5 + 12 * 12 + 2);
  EXPECT_GT(vectors, 0);
}

// All parameters, through positions, types, blocks and the pooler.
TEST(Bert, GradientsAreThoseOfTheForward) {
  for (const double dropout : {0.0, 0.3}) {
    BertConfig config = small_config();
    config.dropout = dropout;
    const Bert model(config, {.seed = 2, .dtype = DType::kFloat64});
    std::uint64_t number = 0;
    for (Parameter* parameter : model.parameters()) {
      initialise(parameter->value, Init::normal(0.5), Random(3, RandomUse::kTest, number++));
    }
    const GradientReport report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      BertBatch one = batch();
      one.dropout = {1, 2, 3};
      const Variable y = model.pooled(tape, model.forward(tape, one));
      return sum(tape, multiply(tape, y, y));
    });
    EXPECT_LT(report.error, 1e-6) << report.where;
  }
}

// Encoders with a head; without types; whose token 4 has no position; with biases that all blocks
// share.
std::vector<BertConfig> configs_with_heads() {
  std::vector<BertConfig> configs(3, small_config());
  configs[0].head = BertHead::kText;
  configs[1].pools = false;
  configs[1].head = BertHead::kTokens;
  configs[1].types = 0;
  configs[2].head = BertHead::kText;
  configs[2].pooled = Activation::kSilu;
  configs[2].types = 0;
  configs[2].padding = 4;
  configs[2].buckets = 8;
  for (BertConfig& config : configs) config.outputs = 3;
  return configs;
}

TEST(Bert, GradientsOfHeadsAreThoseOfTheForward) {
  for (BertConfig config : configs_with_heads()) {
    config.dropout = config.head_dropout = 0.3;
    const Bert model(config, {.seed = 2, .dtype = DType::kFloat64});
    std::uint64_t number = 0;
    for (Parameter* parameter : model.parameters()) {
      initialise(parameter->value, Init::normal(0.5), Random(3, RandomUse::kTest, number++));
    }
    const GradientReport report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      BertBatch one = batch();
      one.types = {};
      one.dropout = {1, 2, 3};
      const Variable y = model.logits(tape, model.forward(tape, one), {}, one.dropout);
      return sum(tape, multiply(tape, y, y));
    });
    EXPECT_LT(report.error, 1e-6) << report.where;
  }
}

TEST(Bert, AHeadReadsTextsOrTokens) {
  const std::vector<BertConfig> configs = configs_with_heads();
  Tape tape(Context(1), TapeMode::kInference);
  const Bert texts(configs[0]), tokens(configs[1]);
  EXPECT_EQ(texts.logits(tape, texts.forward(tape, batch())).rows(), 2);
  BertBatch one = batch();
  one.types = {};
  const BertRows rows = tokens.forward(tape, one);
  const Rows<const float> all = tokens.logits(tape, rows).value<float>();
  ASSERT_EQ(all.rows, 7);
  const std::int32_t at[] = {6, 0};
  const Rows<const float> some = tokens.logits(tape, rows, {at, 2}).value<float>();
  ASSERT_EQ(some.rows, 2);
  EXPECT_EQ(some[0][1], all[6][1]);
  EXPECT_EQ(some[1][2], all[0][2]);
  EXPECT_THROW(texts.logits(tape, texts.forward(tape, batch()), {at, 2}), Error);
  const Bert bare(small_config());
  EXPECT_THROW(bare.logits(tape, bare.forward(tape, batch())), Error);
}

// The rows of the others are those of the same text without the token that has no position.
TEST(Bert, ATokenMayHaveNoPosition) {
  BertConfig config = small_config();
  config.layers = 0;
  config.padding = 4;
  const Bert model(config);
  const auto rows_of = [&](std::vector<std::int32_t> ids) {
    Tape tape(Context(1), TapeMode::kInference);
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
    const Variable x = model.forward(tape, {.texts = {.ids = ids, .offsets = {offsets, 2}}}).rows;
    const Rows<const float> rows = x.value<float>();
    std::vector<std::vector<float>> all;
    for (index n = 0; n < rows.rows; ++n) all.emplace_back(rows[n], rows[n] + rows.columns);
    return all;
  };
  const auto with = rows_of({1, 4, 2, 4, 3}), without = rows_of({1, 2, 3});
  EXPECT_EQ(with[0], without[0]);
  EXPECT_EQ(with[2], without[1]);
  EXPECT_EQ(with[4], without[2]);
  EXPECT_EQ(with[1], with[3]);
}

TEST(Bert, ATextHasItsBitsWhateverStandsBesideIt) {
  const Bert model(small_config());
  Tape tape(Context(2), TapeMode::kInference);
  const BertRows both = model.forward(tape, batch());
  const std::vector<float> second(both.rows.value<float>()[4], both.rows.value<float>()[4] + 12);
  tape.reset();
  const std::int32_t offsets[] = {0, 3};
  const BertRows alone = model.forward(
      tape, {.texts = {.ids = {kIds + 4, 3}, .offsets = {offsets, 2}}, .types = {kTypes + 4, 3}});
  const float* const found = alone.rows.value<float>()[0];
  EXPECT_EQ(std::vector<float>(found, found + 12), second);
}

TEST(Bert, GivesTheRowsOfEveryLayer) {
  const Bert model(small_config());
  Tape tape(Context(1), TapeMode::kInference);
  std::vector<Variable> hidden(3);
  BertBatch one = batch();
  one.hidden = hidden;
  const BertRows found = model.forward(tape, one);
  for (const Variable& rows : hidden) EXPECT_EQ(rows.value<float>().rows, 7);
  EXPECT_EQ(hidden[2].value<float>().data, found.rows.value<float>().data);
  std::vector<Variable> few(2);
  one.hidden = few;
  EXPECT_THROW(model.forward(tape, one), Error);
}

TEST(Bert, RefusesWhatItHasNoRowFor) {
  const Bert model(small_config());
  const auto refuses = [&](std::vector<std::int32_t> ids, std::vector<std::int32_t> types) {
    Tape tape(Context(1), TapeMode::kInference);
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
    try {
      model.forward(tape, {.texts = {.ids = ids, .offsets = {offsets, 2}}, .types = types});
    } catch (const Error& error) {
      return error.code() == ErrorCode::kShape;
    }
    return false;
  };
  EXPECT_FALSE(refuses({1, 2}, {0, 1}));
  EXPECT_TRUE(refuses({1, 7}, {0, 1}));
  EXPECT_TRUE(refuses({1, 2}, {0, 2}));
  EXPECT_TRUE(refuses({1, 2}, {0}));
  EXPECT_TRUE(refuses({1, 1, 1, 1, 1, 1}, {}));
}

TEST(Bert, ForeseesTheMemoryOfAPass) {
  BertConfig config = small_config();
  config.width = 64;
  config.ff = 256;
  config.block = 128;
  const PassCost cost = plan_pass(
      Context(1), config, {.tokens = 1024, .mode = TapeMode::kInference, .sequences = 1024});
  EXPECT_GT(cost.bytes(), 1024.0 * 64 * 4);
  EXPECT_LT(cost.bytes(), 64e6);
}

// What a classifier and a tagger have of a base.
template <class Config>
Config with_base(Config config) {
  BertConfig layers = small_config();
  layers.padding = 4;
  layers.buckets = 8;
  layers.block = 6;
  layers.dropout = 0.3;
  take_layers(config, layers);
  config.output_dropout = 0.3;
  return config;
}

ClassifierConfig classifier_config(ClassifierTask task) {
  ClassifierConfig config = with_base(ClassifierConfig());
  config.kind = ClassifierModel::kPretrained;
  config.task = task;
  config.classes = 3;
  return config;
}

TaggerConfig tagger_config(TagHead head) {
  TaggerConfig config = with_base(TaggerConfig());
  config.encoder.clear();
  config.head = {head};
  config.tags = {3};
  return config;
}

template <class Model>
void start_with_large_numbers(const Model& model) {
  std::uint64_t number = 0;
  for (Parameter* parameter : model.parameters()) {
    initialise(parameter->value, Init::normal(0.5), Random(3, RandomUse::kTest, number++));
  }
}

const std::int32_t kLabels[] = {2, 0};
const float kValues[] = {1, 0, 1, 0, 1, 0};

LabelledTexts labelled_texts() {
  return {.texts = batch().texts, .labels = {kLabels, 2}, .values = {kValues, 2, 3, 3}};
}

// Two sentences of two words and one; the second word has two subwords, the last one none.
TaggedRows tagged_rows() {
  static const std::int32_t zeros[3] = {}, subwords[] = {1, 4, 5}, ends[] = {0, 1, 3, 3},
                            offsets[] = {0, 2, 3}, before[] = {3}, after[] = {2},
                            tags[] = {0, 2, 1};
  return {.rows = {.words = {zeros, 3},
                   .shapes = {zeros, 3},
                   .characters = {subwords, 3},
                   .character_offsets = {ends, 4},
                   .offsets = {offsets, 3},
                   .before = {before, 1},
                   .after = {after, 1}},
          .tags = {{tags, 3}}};
}

TEST(BaseOfAModel, GradientsOfClassifiersAreThoseOfTheForward) {
  using enum ClassifierTask;
  for (const ClassifierTask task : {kSingleLabel, kMultiLabel, kRegression}) {
    const Classifier model(classifier_config(task), {.seed = 2, .dtype = DType::kFloat64});
    start_with_large_numbers(model);
    const GradientReport report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      LabelledTexts texts = labelled_texts();
      if (task == kSingleLabel) texts.values = {};
      return model.loss(tape, texts, {.scale = 0.5, .dropout = {1, 2, 0}});
    });
    EXPECT_LT(report.error, 1e-6) << report.where;
  }
}

TEST(BaseOfAModel, GradientsOfTaggersAreThoseOfTheForward) {
  for (const TagHead head : {TagHead::kSoftmax, TagHead::kCrf}) {
    const Tagger model(tagger_config(head), {}, {.seed = 2, .dtype = DType::kFloat64});
    start_with_large_numbers(model);
    const GradientReport report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
      return model.loss(tape, tagged_rows(), {.scale = 0.5, .dropout = {1, 2, 0}});
    });
    EXPECT_LT(report.error, 1e-6) << report.where;
  }
}

// Without memory for the values, also of biases that all blocks share.
TEST(BaseOfAModel, CountsItsParametersByShapesAlone) {
  const auto held = [](const auto& model) {
    index count = 0;
    for (const Parameter* parameter : model.parameters()) count += parameter->value.size();
    return count;
  };
  const ClassifierConfig texts = classifier_config(ClassifierTask::kSingleLabel);
  EXPECT_EQ(parameter_count(texts), held(Classifier(texts, 1)));
  const TaggerConfig words = tagger_config(TagHead::kCrf);
  EXPECT_EQ(parameter_count(words), held(Tagger(words, {}, 1)));
}

template <class Model>
void copy_by_name(const Model& from, const Bert& to) {
  for (Parameter* const parameter : to.parameters()) {
    const auto found = std::ranges::find(from.parameters(), parameter->name, &Parameter::name);
    ASSERT_NE(found, from.parameters().end()) << parameter->name;
    parameter->value = (*found)->value.to(DType::kFloat32);
  }
}

// The layers of BERT with its head, under the same names: the same bits.
TEST(BaseOfAModel, ComputesWhatBertDoesWithItsHead) {
  const ClassifierConfig config = classifier_config(ClassifierTask::kSingleLabel);
  const Classifier classifier(config, 5);
  BertConfig layers = pretrained_layers(config);
  layers.pools = true;
  layers.head = BertHead::kText;
  layers.outputs = 3;
  const Bert texts(layers);
  copy_by_name(classifier, texts);
  Tape tape(Context(1), TapeMode::kInference);
  const auto ours = classifier.logits(tape, batch().texts).value<float>();
  const auto theirs =
      texts.logits(tape, texts.forward(tape, {.texts = batch().texts})).value<float>();
  for (index n = 0; n < 6; ++n) EXPECT_EQ(ours[n / 3][n % 3], theirs[n / 3][n % 3]);

  const Tagger tagger(tagger_config(TagHead::kSoftmax), {}, 5);
  layers.pools = false;
  layers.head = BertHead::kTokens;
  const Bert tokens(layers);
  copy_by_name(tagger, tokens);
  const std::int32_t ids[] = {3, 1, 4, 5, 2, 3, 2}, offsets[] = {0, 5, 7}, places[] = {1, 2, 6};
  const BertRows rows = tokens.forward(tape, {.texts = {.ids = {ids, 7}, .offsets = {offsets, 3}}});
  const auto all = tokens.logits(tape, rows).value<float>();
  const auto found = tagger.scores(tape, tagged_rows().rows).logits[0].value<float>();
  for (index w = 0; w < 3; ++w) {
    for (index k = 0; k < 3; ++k) EXPECT_EQ(found[w][k], all[places[w]][k]);
  }
}

TEST(BaseOfAModel, TellsWhatItsAttentionsLookAt) {
  const Classifier model(classifier_config(ClassifierTask::kSingleLabel), 5);
  ASSERT_EQ(model.attentions(), 2);
  std::vector<HeadStatistics> seen(2);
  Tape tape(Context(1), TapeMode::kInference);
  model.logits(tape, batch().texts, {.attention = seen});
  for (const HeadStatistics& one : seen) EXPECT_EQ(one.queries, 7);
}

TEST(BaseOfAModel, RefusesWhatDoesNotFit) {
  ClassifierConfig config = classifier_config(ClassifierTask::kSingleLabel);
  config.encoder = "conv3";
  EXPECT_THROW(resolve(config), Error);
  config = classifier_config(ClassifierTask::kSingleLabel);
  config.heads = 3;
  EXPECT_THROW(resolve(config), Error);
  config = classifier_config(ClassifierTask::kSingleLabel);
  config.kind = ClassifierModel::kBag;
  EXPECT_THROW(resolve(config), Error);
  TaggerConfig tags = tagger_config(TagHead::kSoftmax);
  tags.width = 5;
  EXPECT_THROW(resolve(tags), Error);
}

TEST(BaseOfAModel, ForeseesTheMemoryOfAPass) {
  ClassifierConfig texts = classifier_config(ClassifierTask::kSingleLabel);
  TaggerConfig words = tagger_config(TagHead::kSoftmax);
  EXPECT_EQ(parameter_count(texts), parameter_count(words) + 4 * 4 + 4);  // its pooler
  for (EncoderConfig* config : std::initializer_list<EncoderConfig*>{&texts, &words}) {
    config->width = 64;
    config->ff = 256;
    config->block = 128;
  }
  const auto of_texts = [&](index tokens) {
    return plan_pass(Context(1), texts, TextLoad{8, {.tokens = tokens, .sequences = 8}}).tape;
  };
  const auto of_words = [&](index tokens) {
    return plan_pass(Context(1), words, WordLoad{{.tokens = 16, .sequences = 8}, tokens}).tape;
  };
  EXPECT_GT(of_texts(1024), 1.5 * of_texts(512));
  EXPECT_GT(of_words(1024), 1.5 * of_words(512));
}

}  // namespace
}  // namespace fovea
