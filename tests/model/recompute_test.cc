// SPDX-License-Identifier: Apache-2.0
// Layers that keep their input alone (InnerResults): the bits of a model that keeps all.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "fovea/model/pass_plan.h"
#include "tests/model/classifier_support.h"
#include "tests/model/language_model_cases.h"
#include "tests/model/support.h"
#include "tests/model/translator_support.h"

namespace fovea {
namespace {

struct Trained {
  std::vector<float> loss;
  std::vector<std::vector<float>> gradients;
  std::vector<std::vector<double>> entropy, max_logit;
  std::vector<index> queries;
  std::size_t peak = 0;
};

// Forward and backward of two batches whose gradients add up, with statistics of the heads.
template <class Model, class Batch, class Options>
Trained train_model(const Model& model, const Batch& batch, Options options, InnerResults inner,
                    const Context& context) {
  for (Parameter* p : model.parameters()) p->clear_gradient();
  std::vector<HeadStatistics> seen(static_cast<std::size_t>(model.attentions()));
  options.attention = seen;
  options.dropout = {7, 3, 0};
  options.scale = 0.01;
  Trained result;
  Tape tape(context);
  tape.set_inner_results(inner);
  for (int pass = 0; pass < 2; ++pass) {
    tape.reset();
    const Variable loss = model.loss(tape, batch.view(), options);
    tape.backward(loss);
    result.loss.push_back(loss.value<float>()[0][0]);
  }
  for (Parameter* p : model.parameters()) {
    result.gradients.push_back(to_vector(p->finished_gradient().template vec<float>()));
  }
  for (const HeadStatistics& one : seen) {
    result.entropy.push_back(one.entropy);
    result.max_logit.push_back(one.max_logit);
    result.queries.push_back(one.queries);
  }
  result.peak = tape.peak();
  return result;
}

// The peaks of both, kept and recomputed.
template <class Options, class Model, class Batch>
std::pair<std::size_t, std::size_t> expect_same_bits(const Model& model, const Batch& batch,
                                                     Precision precision = Precision::kFloat32) {
  const auto with = [&](InnerResults inner) {
    return train_model(model, batch, Options(), inner, Context(2).with(precision));
  };
  const Trained kept = with(InnerResults::kKept), again = with(InnerResults::kRecomputed);
  EXPECT_EQ(again.loss, kept.loss);
  EXPECT_EQ(again.gradients, kept.gradients);
  EXPECT_EQ(again.entropy, kept.entropy);
  EXPECT_EQ(again.max_logit, kept.max_logit);
  EXPECT_EQ(again.queries, kept.queries);
  return {kept.peak, again.peak};
}

TEST(RecomputedLayers, OfALanguageModelHaveTheSameBits) {
  for (const LanguageModelCase& c : language_model_cases()) {
    for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
      SCOPED_TRACE(c.name);
      const OwnedBatch batch({c.length, 5, c.length, 1}, c.config.vocabulary);
      expect_same_bits<LossOptions>(LanguageModel(c.config, 1), batch, precision);
    }
  }
}

TEST(RecomputedLayers, OfAClassifierHaveTheSameBits) {
  for (const char* encoder :
       {"attention:no-output:plain", "transformer:layers=2", "conv3+bigru:32", "textcnn:3,4",
        "attention:position=shaw", "attention:dilation=4:window=4"}) {
    SCOPED_TRACE(encoder);
    ClassifierConfig c = classifier_config(ClassifierTask::kSingleLabel, encoder);
    c.block = 48;
    c.dropout = 0.1;
    expect_same_bits<ClassifierLossOptions>(Classifier(c, 1), OwnedTexts({48, 20, 7, 48}, c));
  }
}

TEST(RecomputedLayers, OfATranslatorHaveTheSameBits) {
  for (const NormPosition norm : {NormPosition::kPre, NormPosition::kPost}) {
    TranslatorConfig c = translator_config();
    c.encoder_layers = c.decoder_layers = 3;
    c.norm_position = norm;
    c.dropout = 0.1;
    const OwnedPairs batch({{12, 5}, {3, 12}, {7, 7}}, c);
    expect_same_bits<TranslatorLossOptions>(Translator(c, 1), batch);
  }
}

TEST(RecomputedLayers, TakeLessMemory) {
  LanguageModelConfig c = small_language_model();
  c.layers = 8;
  const auto [kept, again] =
      expect_same_bits<LossOptions>(LanguageModel(c, 1), OwnedBatch({48, 48, 48, 48}, 500));
  EXPECT_LT(static_cast<double>(again), 0.4 * static_cast<double>(kept));
  const auto planned = [&](InnerResults inner) {
    return plan_pass(Context(2), c, {.tokens = 192, .sequences = 4, .inner = inner}).tape;
  };
  EXPECT_LT(planned(InnerResults::kRecomputed), 0.5 * planned(InnerResults::kKept));
}

}  // namespace
}  // namespace fovea
