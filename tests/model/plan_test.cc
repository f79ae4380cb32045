// SPDX-License-Identifier: Apache-2.0
// A plan of a model takes what a run of it takes: to the byte of its tape, and to the operation.
#include "fovea/base/plan.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "fovea/base/machine.h"
#include "fovea/base/profile.h"
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
Taken taken(const Context& context, const Model& model, const Batch& batch, TapeMode mode) {
  Profile profile;
  Tape tape(context.profiled(profile), mode);
  const Variable loss = model.loss(tape, batch.view());
  if (mode == TapeMode::kTrain) tape.backward(loss);
  Taken taken{.tape = tape.peak()};
  for (const Profile::Part& part : profile.parts()) taken.flops += part.work.flops;
  return taken;
}

// `make` makes a model with these options.
template <class Make, class Batch>
void expect_plan(const Make& make, const Batch& batch) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    for (const TapeMode mode : {TapeMode::kTrain, TapeMode::kInference}) {
      const Context context = Context(2).with(precision);
      const Taken run = taken(context, make(ParameterSetOptions{.seed = 1}), batch, mode);
      Plan plan;
      const auto model = make(ParameterSetOptions{.memory = ParameterMemory::kUnwritten});
      const Taken planned = taken(context.planned(plan), model, batch, mode);
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
        "conv3,attention:window=8", "conv5+bigru:32", "bisru:32", "conv3:48+conv3:40"}) {
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

}  // namespace
}  // namespace fovea
