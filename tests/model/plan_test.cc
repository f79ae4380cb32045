// SPDX-License-Identifier: Apache-2.0
// A plan of a model takes what a run of it takes: to the byte of its tape, and to the operation.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/base/profile.h"
#include "fovea/base/sanitizer.h"
#include "fovea/model/pass_plan.h"
#include "tests/model/classifier_support.h"
#include "tests/model/language_model_cases.h"
#include "tests/model/support.h"
#include "tests/model/tagger_support.h"
#include "tests/model/translator_support.h"

namespace fovea {
namespace {

struct Taken {
  std::size_t tape = 0;
  double flops = 0;
};

template <class Model, class Batch>
Taken taken(const Context& context, const Model& model, const Batch& batch, TapeMode mode,
            InnerResults inner = InnerResults::kKept) {
  Profile profile;
  Tape tape(context.profiled(profile), mode);
  tape.set_inner_results(inner);
  const Variable loss = model.loss(tape, batch.view());
  if (mode == TapeMode::kTrain) tape.backward(loss);
  Taken taken{.tape = tape.peak()};
  for (const Profile::Part& part : profile.parts()) taken.flops += part.work.flops;
  return taken;
}

constexpr std::pair<TapeMode, InnerResults> kPasses[] = {
    {TapeMode::kTrain, InnerResults::kKept},
    {TapeMode::kTrain, InnerResults::kRecomputed},
    {TapeMode::kInference, InnerResults::kKept}};

// `make` makes a model with these options.
template <class Make, class Batch>
void expect_plan(const Make& make, const Batch& batch) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    for (const auto& [mode, inner] : kPasses) {
      const Context context = Context(2).with(precision);
      const Taken run = taken(context, make(ParameterSetOptions{.seed = 1}), batch, mode, inner);
      Plan plan;
      const auto model = make(ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
      const Taken planned = taken(context.planned(plan), model, batch, mode, inner);
      EXPECT_EQ(planned.tape, run.tape) << precision_name(precision) << " " << int(mode);
      EXPECT_EQ(planned.flops, run.flops) << precision_name(precision) << " " << int(mode);
    }
  }
}

TEST(Plan, OfALanguageModelIsItsRun) {
  for (const LanguageModelCase& c : language_model_cases()) {
    SCOPED_TRACE(c.name);
    const OwnedBatch batch(std::vector<index>(static_cast<std::size_t>(c.sequences), c.length),
                           c.config.vocabulary);
    expect_plan([&](const auto& options) { return LanguageModel(c.config, options); }, batch);
  }
}

ClassifierConfig classifier_base(const char* encoder) {
  ClassifierConfig c = classifier_config(ClassifierTask::kSingleLabel, encoder);
  c.heads = 4;
  c.width = 64;
  c.ff = 0;
  c.block = 48;
  c.vocabulary = 500;
  return c;
}

std::vector<ClassifierConfig> classifier_cases() {
  std::vector<ClassifierConfig> all;
  for (const char* encoder :
       {"", "attention:no-output:plain", "attention", "transformer:layers=2", "bilstm:32",
        "conv3,attention:window=8", "conv5+bigru:32", "bisru:32", "conv3:48+conv3:40",
        "textcnn:3,4,5:width=32", "conv3,textcnn:2", "attention:dilation=4:window=4",
        "attention:strided=8", "attention:position=shaw"}) {
    all.push_back(classifier_base(encoder));
  }
  all.push_back(classifier_base("attention:no-output:plain"));
  all.back().position = PositionKind::kLearned;
  all.back().block = 4 * 48;  // a position for every second token
  for (const char* encoder : {"conv3:48+conv3:40", "conv3:48"}) {
    all.push_back(classifier_base(encoder));
    all.back().dropout = 0.1;
  }
  for (const char* encoder : {"", "conv3"}) {
    all.push_back(classifier_base(encoder));
    all.back().ngrams = 3;
    all.back().buckets = 1000;
    all.back().ngram_width = 40;
    all.back().output_dropout = encoder[0] == 0 ? 0.5 : 0;
  }
  for (const auto& [pooling, name] : enum_names(PoolingKind{})) {
    all.push_back(classifier_base("transformer"));
    all.back().pooling = pooling;
    all.push_back(classifier_base(""));
    all.back().pooling = pooling;
    all.back().output_dropout = 0.5;
  }
  return all;
}

TEST(Plan, OfAClassifierIsItsRun) {
  for (const ClassifierConfig& c : classifier_cases()) {
    SCOPED_TRACE(testing::Message() << c.encoder << " " << to_string(c.pooling));
    const index texts = 8 * 48 / c.block;
    OwnedTexts batch(std::vector<index>(static_cast<std::size_t>(texts), c.block), c);
    std::iota(batch.tokens.ids.begin(), batch.tokens.ids.end(), 0);  // no token twice
    expect_plan([&](const auto& options) { return Classifier(c, options); }, batch);
  }
}

std::vector<TaggerConfig> tagger_cases() {
  std::vector<TaggerConfig> all;
  for (const char* encoder : {"", "bilstm:32", "conv3,attention", "transformer"}) {
    for (const auto& [reader, name] : enum_names(CharacterReader{})) {
      for (const TagHead head : {TagHead::kSoftmax, TagHead::kCrf}) {
        TaggerConfig c = tagger_config(encoder, head);
        c.character_reader = reader;
        c.word_width = c.width = 64;
        c.character_width = 20;
        c.character_features = 32;
        c.heads = 4;
        c.ff = 0;
        c.block = 48;
        c.vocabulary = 300;
        if (reader == CharacterReader::kNone) c.ngram_width = 16;
        c.linear = reader == CharacterReader::kConvolution;
        if (head == TagHead::kCrf) c.input_dropout = c.output_dropout = 0.3;
        all.push_back(c);
        if (reader != CharacterReader::kNone) continue;
        all.push_back(c);
        all.back().tags = {3, 20};
      }
    }
  }
  all.push_back(all.front());
  all.back().head = {TagHead::kCrf};
  all.back().tags = {900};
  all.push_back(linear_config());
  all.back().block = 48;
  return all;
}

TEST(Plan, OfATaggerIsItsRun) {
  for (const TaggerConfig& c : tagger_cases()) {
    SCOPED_TRACE(testing::Message() << c.encoder << " " << to_string(c.character_reader) << " "
                                    << to_string(c.head[0]));
    const OwnedWords batch(std::vector<index>(8, 48), c);
    expect_plan([&](const auto& options) { return Tagger(c, {}, options); }, batch);
  }
}

TranslatorConfig wide() {
  TranslatorConfig c = translator_config();
  c.width = 64;
  c.heads = 4;
  c.ff = 0;
  c.block = 48;
  c.vocabulary = c.target_vocabulary = 300;
  return c;
}

std::vector<TranslatorConfig> translator_cases() {
  std::vector<TranslatorConfig> all(8, wide());
  all[1].norm_position = NormPosition::kPost;
  all[1].decoder_layers = 4;
  all[2].encoder_layers = 6;
  all[2].dropout = 0.1;
  all[3].encoder = "conv3,bilstm:32";
  all[4].kv_heads = 2;
  all[4].qk_norm = true;
  all[4].share_embeddings = true;
  all[5].tie = false;
  all[5].norm = NormKind::kRms;
  for (const std::size_t n : {6, 7}) {
    all[n].kind = TranslatorKind::kBahdanauGru;
    all[n].encoder_layers = TranslatorConfig().encoder_layers;
  }
  all[7].dropout = 0.1;
  all[7].encoder = "bigru:48,bigru:48";
  return all;
}

TEST(Plan, OfATranslatorIsItsRun) {
  for (const TranslatorConfig& c : translator_cases()) {
    for (const auto& [from, to] : {std::pair{40, 20}, {20, 40}}) {
      SCOPED_TRACE(testing::Message() << c.encoder << " " << from << " " << to);
      const OwnedPairs batch(std::vector<std::pair<index, index>>(8, {from, to}), c);
      expect_plan([&](const auto& options) { return Translator(c, options); }, batch);
    }
  }
}

// ---- configurations at random

template <class Enum>
Enum any(Random& random) {
  const auto names = enum_names(Enum{});
  return names[static_cast<std::size_t>(random.below(std::ssize(names)))].value;
}

std::string any_encoder(Random& random) {
  constexpr std::array kLayers = {"rnn",         "gru",
                                  "lstm",        "sru",
                                  "bilstm:12",   "bigru",
                                  "conv3",       "conv5:20:dilation=2",
                                  "conv3:gated", "attention",
                                  "ff",          "attention:no-output:plain",
                                  "transformer", "attention:window=3"};
  std::string encoder;
  for (index layers = random.below(4); layers > 0; --layers) {
    if (!encoder.empty()) encoder += random.below(4) == 0 ? "+" : ",";
    encoder += kLayers[static_cast<std::size_t>(random.below(std::ssize(kLayers)))];
  }
  return encoder;
}

void draw(EncoderConfig& c, Random& random) {
  const auto coin = [&] { return random.below(3) == 0; };
  c.heads = index{1} << random.below(3);
  c.kv_heads = coin() ? 1 : 0;
  c.head_dim = coin() ? 1 + random.below(20) : 0;
  c.width = c.heads * (1 + random.below(12));
  c.ff = coin() ? 1 + random.below(70) : 0;
  c.block = 24;
  c.dropout = coin() ? 0.1 : 0;
  c.position = any<PositionKind>(random);
  if (coin()) c.position_join = PositionJoin::kConcatenate;
  c.qk_norm = coin();
  if (coin()) c.score = any<AttentionScoreKind>(random);
  if (coin()) c.attention_norm = any<AttentionNormKind>(random);
  c.log_n_scale = coin();
  c.softcap = coin() ? 20 : 0;
  c.sink = coin();
  c.norm = any<NormKind>(random);
  c.norm_position = any<NormPosition>(random);
  c.bias = coin();
  c.activation = any<LayerActivation>(random);
  c.vocabulary = 2 + random.below(60);
  if (coin()) c.encoder = any_encoder(random);
}

// Calls f(config) for `count` random configurations that are possible.
template <class Config, class More, class F>
void for_random_configs(int count, More&& more, F&& f) {
  Random random(5, RandomUse::kTest);
  while (count > 0) {
    Config c;
    draw(c, random);
    more(c, random);
    try {
      resolve(c);
    } catch (const Error&) {
      continue;  // options that do not go together
    }
    SCOPED_TRACE(testing::Message() << count << ": " << c.encoder << " " << c.width);
    f(c, random);
    --count;
  }
}

std::vector<index> any_lengths(Random& random) {
  std::vector<index> lengths(static_cast<std::size_t>(1 + random.below(9)));
  for (index& length : lengths) length = 1 + random.below(24);
  return lengths;
}

TEST(Plan, OfRandomLanguageModels) {
  const auto more = [](LanguageModelConfig& c, Random& random) {
    c.kind = c.encoder.empty() ? any<LanguageModelKind>(random) : LanguageModelKind::kEncoder;
    c.layers = 1 + random.below(3);
    c.tie = random.below(2) == 0;
  };
  for_random_configs<LanguageModelConfig>(120, more, [](const auto& c, Random& random) {
    expect_plan([&](const auto& options) { return LanguageModel(c, options); },
                OwnedBatch(any_lengths(random), c.vocabulary));
  });
}

TEST(Plan, OfRandomClassifiers) {
  const auto more = [](ClassifierConfig& c, Random& random) {
    c.sight = Sight::kWhole;
    c.task = any<ClassifierTask>(random);
    c.classes = c.task == ClassifierTask::kBinary ? 2 : 1 + random.below(5);
    c.pooling = any<PoolingKind>(random);
    c.output_dropout = random.below(2) * 0.5;
    if (random.below(3) == 0) c.ngrams = 3, c.buckets = 50, c.ngram_width = 8;
  };
  for_random_configs<ClassifierConfig>(80, more, [](const auto& c, Random& random) {
    expect_plan([&](const auto& options) { return Classifier(c, options); },
                OwnedTexts(any_lengths(random), c));
  });
}

TEST(Plan, OfRandomTaggers) {
  const auto more = [](TaggerConfig& c, Random& random) {
    c.sight = Sight::kWhole;
    c.character_reader = any<CharacterReader>(random);
    c.head = {any<TagHead>(random)};
    c.tags = {1 + random.below(30)};
    c.characters = 9;
    c.word_width = 6, c.character_width = 5, c.character_features = 8, c.shape_width = 3;
    c.linear = random.below(3) == 0;
  };
  for_random_configs<TaggerConfig>(60, more, [](const auto& c, Random& random) {
    expect_plan([&](const auto& options) { return Tagger(c, {}, options); },
                OwnedWords(any_lengths(random), c));
  });
}

TEST(Plan, OfRandomTranslators) {
  const auto more = [](TranslatorConfig& c, Random& random) {
    c.kind = any<TranslatorKind>(random);
    c.encoder_layers = 1 + random.below(2);
    c.decoder_layers = 1 + random.below(2);
    c.target_vocabulary = 2 + random.below(40);
    c.tie = random.below(2) == 0;
  };
  for_random_configs<TranslatorConfig>(60, more, [](const auto& c, Random& random) {
    std::vector<std::pair<index, index>> lengths;
    for (const index length : any_lengths(random)) {
      lengths.emplace_back(length, 1 + random.below(24));
    }
    expect_plan([&](const auto& options) { return Translator(c, options); },
                OwnedPairs(lengths, c));
  });
}

#if !defined(FOVEA_ADDRESS_SANITIZER)  // which touches memory of its own for each byte
TEST(Plan, OfALargeModelTouchesLittleMemory) {
  LanguageModelConfig c;
  c.layers = 12, c.heads = 12, c.width = 768, c.block = 1024, c.vocabulary = 50257;
  const OwnedBatch batch(std::vector<index>(8, 1024), c.vocabulary);
  const std::int64_t before = resident_memory_bytes();
  Plan plan;
  const LanguageModel model(c, {.memory = ParameterMemory::kUnwritten});
  EXPECT_GT(taken(Context(2).planned(plan), model, batch, TapeMode::kTrain).tape,
            std::size_t{5} << 30);
  EXPECT_LT(resident_memory_bytes() - before, 50 << 20);
}
#endif

// A matrix is multiplied thrice, each time an addition and a multiplication a value; attention of
// one token to itself has 2 products forward and 5 backward.
TEST(Plan, OfALanguageModelCountsItsMatrices) {
  LanguageModelConfig c = small_language_model();
  c.layers = 2, c.heads = 4, c.width = 32, c.ff = 128, c.block = 1, c.tie = true;
  c.position = PositionKind::kLearned;
  const double matrices = 2 * (4 * 32 * 32 + 2 * 32 * 128) + 32 * static_cast<double>(c.vocabulary);
  const double attention = 2 * 7 * 2 * 32;
  EXPECT_DOUBLE_EQ(plan_pass(Context(1), c, {.tokens = 5}).flops, 5 * (6 * matrices + attention));
}

// The memory for more tokens than a plan lists is reckoned from two parts of the batch.
TEST(Plan, OfABatchOfAnySizeIsQuick) {
  LanguageModelConfig c = small_language_model();
  const auto bytes = [&](index tokens) {
    return plan_pass(Context(2), c, {.tokens = tokens, .sequences = tokens / c.block});
  };
  const PassCost some = bytes(1 << 19), many = bytes(1 << 25);
  EXPECT_NEAR(many.tape / some.tape, 64, 1);
  EXPECT_NEAR(many.flops / some.flops, 64, 1);
  const std::int64_t before = resident_memory_bytes();
  EXPECT_GT(bytes(index{1} << 40).tape, 1e15);
  EXPECT_LT(resident_memory_bytes() - before, 100 << 20);
}

}  // namespace
}  // namespace fovea
