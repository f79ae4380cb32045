// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/explain.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "fovea/model/ngram_ids.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/text_predictor.h"
#include "tests/support/throws.h"
#include "tests/task/classify/untrained_classifier.h"
#include "tests/task/classify/untrained_frames.h"

namespace fovea {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const std::vector<std::string> kVerdicts = {"bad", "good", "so-so"};

LoadedClassifier classifier(const std::string& encoder = "transformer:layers=2",
                            ClassifierTask task = ClassifierTask::kSingleLabel) {
  return untrained_classifier(task, kVerdicts, encoder);
}

double sum_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

TEST(ExplainText, HasTheTokensWeightsAndPredictionOfAClassifier) {
  const LoadedClassifier model = classifier();
  const Explanation e = explain_text(Context(2), model, "abca", {});
  EXPECT_EQ(e.kind.english, "text classifier");
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
    const auto k = std::find(kVerdicts.begin(), kVerdicts.end(), label) - kVerdicts.begin();
    EXPECT_EQ(probability, double{predicted[0][k]}) << label;
  }
  EXPECT_GE(e.prediction[0].probability, e.prediction[1].probability);
  EXPECT_THAT(e.saliency.values, SizeIs(4));
  EXPECT_THAT(filled(e.saliency.of, QuoteLength::kShort).english,
              HasSubstr("the logit of \"" + e.prediction[0].label + "\""));
}

TEST(ExplainText, HasTheSameBitsForAnyNumberOfThreads) {
  const LoadedClassifier classes = classifier("conv3,attention,bilstm:16");
  const auto numbers = [&](int threads) {
    std::vector<float> all;
    const Explanation e = explain_text(Context(threads), classes, "abcdefgh", {});
    for (const ExplainedLayer& layer : e.layers) {
      all.insert(all.end(), layer.weights.begin(), layer.weights.end());
    }
    all.insert(all.end(), e.saliency.values.begin(), e.saliency.values.end());
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
  EXPECT_EQ(filled(good.saliency.of, QuoteLength::kShort).english, "the logit of \"good\"");
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
  EXPECT_THAT(explain_text(Context(1), classifier("conv3,attention"), "ab", rollout).notes,
              SizeIs(1));
  const ExplainOptions none{.saliency = SaliencyMethod::kNone};
  EXPECT_THAT(explain_text(Context(1), classifier(), "ab", none).saliency.values, SizeIs(0));
}

TEST(ExplainText, CutsALongText) {
  LoadedClassifier classes = classifier();
  const Explanation cut = explain_text(Context(1), classes, std::string(30, 'a'), {});
  EXPECT_EQ(cut.cut, 10);
  EXPECT_THAT(cut.tokens, SizeIs(20));
}

LoadedClassifier with_ngrams(const std::string& encoder, PoolingKind pooling) {
  LoadedClassifier model = classifier(encoder);
  ClassifierConfig& config = model.settings.model;
  config.ngrams = 3;
  config.buckets = 1000;
  config.pooling = pooling;
  model.model = std::make_unique<Classifier>(config, 3);
  return model;
}

Parameter& parameter(const LoadedClassifier& model, const std::string& name) {
  for (Parameter* const one : model.model->parameters()) {
    if (one->name == name) return *one;
  }
  throw std::out_of_range(name);
}

// The logit of label k of a text, computed without an explanation.
double logit_of(const LoadedClassifier& model, const std::string& text, index k) {
  const std::vector<token> ids = model.tokenizer->encode(text, "text");
  const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
  Tape tape(Context(1), TapeMode::kInference);
  const TextRows rows{.ids = {ids.data(), std::ssize(ids)}, .offsets = {offsets, 2}};
  return double{model.model->logits(tape, rows).value<float>()[0][k]};
}

void scale_row(Parameter& table, index row, float factor) {
  float* const values = table.value.rows<float>()[row];
  for (index c = 0; c < table.value.shape()[1]; ++c) values[c] *= factor;
  ++table.version;
}

TEST(ExplainText, WhatABagOfNgramsAddsIsExact) {
  for (const PoolingKind pooling :
       {PoolingKind::kMean, PoolingKind::kMax, PoolingKind::kFirst, PoolingKind::kLast}) {
    const LoadedClassifier model = with_ngrams("", pooling);
    float* const bias = parameter(model, "output.bias").value.data<float>();
    std::iota(bias, bias + 3, 2.5F);
    for (const std::string text : {"abcadb", "a"}) {
      for (index k = 0; k < 3; ++k) {
        const Explanation e = explain_text(Context(1), model, text,
                                           {.target = kVerdicts[static_cast<std::size_t>(k)]});
        EXPECT_FALSE(e.has_weights());
        ASSERT_TRUE(e.saliency.exact);
        EXPECT_EQ(e.saliency.exact->bias, 2.5 + static_cast<double>(k));
        EXPECT_EQ(e.saliency.exact->value, logit_of(model, text, k));
        EXPECT_NEAR(sum_of(e.saliency.values) + e.saliency.exact->bias, e.saliency.exact->value,
                    1e-5)
            << text << k;
      }
    }
  }
  EXPECT_FALSE(explain_text(Context(1), with_ngrams("", PoolingKind::kMean), "ab",
                            {SaliencyMethod::kGradient})
                   .saliency.exact);
}

// Without the row of one n-gram, the numbers of its tokens alone change, all alike, by what the
// logit loses.
TEST(ExplainText, AnNgramIsSharedByItsTokens) {
  const LoadedClassifier model = with_ngrams("", PoolingKind::kMean);
  const std::string text = "abcd";
  const std::vector<token> ids = model.tokenizer->encode(text, "text");
  const std::int32_t offsets[] = {0, 4};
  std::vector<std::int32_t> rows(5);  // ab, bc, abc, cd, bcd
  hash_ngrams(Context(1), {{ids.data(), 4}, {offsets, 2}}, {3, 1000}, {rows.data(), 5});
  const ExplainOptions good{.target = "good"};
  const auto values = [&] { return explain_text(Context(1), model, text, good).saliency.values; };
  const std::vector<float> before = values();
  const double logit = logit_of(model, text, 1);
  scale_row(parameter(model, "ngrams.weight"), rows[4], 0);
  const std::vector<float> after = values();
  const double lost = logit - logit_of(model, text, 1);
  EXPECT_GT(std::abs(lost), 1e-4);
  EXPECT_EQ(after[0], before[0]);
  for (std::size_t t = 1; t < 4; ++t) {
    EXPECT_NEAR(before[t] - after[t], lost / 3, 1e-6) << t;
  }
}

// The gradient against differences, as the embedding of a token becomes larger and smaller.
TEST(ExplainText, SaliencyWithoutAttentionIsThatOfFiniteDifferences) {
  for (const char* const encoder : {"bilstm:8", "conv3", "conv3,gru:8"}) {
    const LoadedClassifier model = classifier(encoder);
    const std::string text = "abcda";
    const Explanation e = explain_text(Context(1), model, text, {.target = "good"});
    EXPECT_THAT(e.layers, SizeIs(0));
    EXPECT_FALSE(e.saliency.exact);
    Parameter& table = parameter(model, "embedding.tokens");
    const std::vector<token> ids = model.tokenizer->encode(text, "text");
    for (std::size_t t = 1; t < 4; ++t) {
      constexpr float kStep = 1.0F / 64;
      scale_row(table, ids[t], 1 + kStep);
      const double above = logit_of(model, text, 1);
      scale_row(table, ids[t], (1 - kStep) / (1 + kStep));
      const double below = logit_of(model, text, 1);
      scale_row(table, ids[t], 1 / (1 - kStep));
      EXPECT_NEAR(e.saliency.values[t], (above - below) / (2 * double{kStep}), 1e-3)
          << encoder << t;
    }
  }
}

TEST(ExplainText, RefusesWhatCannotBeExplained) {
  EXPECT_THROWS(explain_text(Context(1), classifier("conv3"), "ab", {SaliencyMethod::kRollout}),
                kOptionValue, "no attention");
  EXPECT_THROWS(explain_text(Context(1), classifier(), "", {}), kInputTooSmall, "no token");
  EXPECT_THROWS(explain_text(Context(1), classifier(), "a\xff", {}), kEncoding, "text:1:2");
  LoadedClassifier numbers = classifier();
  numbers.settings.text.input = InputKind::kNpz;
  EXPECT_THROWS(explain_text(Context(1), numbers, "ab", {}), kModelWrongKind, "reads numbers");
}

// Two samples for untrained_frames(): of 2 time steps, and of 5, which the model cuts in front
// to 4.
FrameFile two_files_samples(index joints = 3) {
  const FrameSet set = two_samples();
  FrameFile file{.name = "two.npz",
                 .x = Tensor(joints > 0 ? Shape{2, 5, 3, 2} : Shape{2, 5, 6}),
                 .joints = joints,
                 .features = joints > 0 ? 2 : 6,
                 .lengths = {2, 5},
                 .labels = {},
                 .numbers = {}};
  float* const x = file.x.data<float>();
  std::copy_n(set.values.begin(), 2 * 6, x);
  std::copy_n(set.values.begin() + 2 * 6, 5 * 6, x + 5 * 6);
  return file;
}

const NamedTensor& named(const std::vector<NamedTensor>& arrays, const std::string& name) {
  return *std::find_if(arrays.begin(), arrays.end(),
                       [&](const NamedTensor& one) { return one.name == name; });
}

// The mean weight that a row receives is what `classify --weights` writes.
TEST(ExplainSample, HasTheWeightsThatClassifyWrites) {
  const LoadedClassifier model =
      untrained_frames("attention,attention:joints", PoolingKind::kAttention);
  const auto arrays = frame_weights(Context(1), model, two_samples(), 5);
  for (const index sample : {0, 1}) {
    const Explanation e = explain_sample(Context(2), model, two_files_samples(), sample, {});
    const index T = sample == 0 ? 2 : 4, first = sample == 0 ? 0 : 1;
    ASSERT_THAT(e.tokens, SizeIs(static_cast<std::size_t>(T)));
    EXPECT_EQ(e.tokens[0], sample == 0 ? "0" : "1");
    EXPECT_EQ(e.cut, first);
    EXPECT_EQ(e.numbers->first_step, first);
    ASSERT_THAT(e.layers, SizeIs(2));
    EXPECT_EQ(e.layers[1].name, "layer 2 (attention:joints)");
    EXPECT_THAT(e.layers[1].distance, SizeIs(0));
    for (const ExplainedLayer& layer : e.layers) {
      const index n = layer.keys;
      EXPECT_EQ(layer.queries, n);
      EXPECT_EQ(n, layer.across ? 3 : T);
      const float* const received =
          named(arrays, layer.across ? "attention_1" : "attention_0").tensor.data<float>() +
          (sample * 5 + first) * 3;
      for (index s = 0; s < layer.sequences; ++s) {
        for (index key = 0; key < n; ++key) {
          double mean = 0;
          for (index h = 1; h <= 2; ++h) {
            for (index q = 0; q < n; ++q) {
              mean += double{layer.head(h, s).row(q)[static_cast<std::size_t>(key)]} /
                      static_cast<double>(2 * n);
            }
          }
          const index t = layer.across ? s : key, j = layer.across ? key : s;
          EXPECT_NEAR(mean, received[t * 3 + j], 1e-6) << layer.name << s << key;
        }
      }
    }
    const float* const pooling =
        named(arrays, "pooling").tensor.data<float>() + (sample * 5 + first) * 3;
    for (index n = 0; n < T * 3; ++n) {
      EXPECT_EQ(e.pooling[static_cast<std::size_t>(n)], pooling[n]) << n;
    }
  }
}

// The gradient against differences of the normalised numbers, at each time step and joint.
TEST(ExplainSample, SaliencyIsThatOfFiniteDifferences) {
  LoadedClassifier model = untrained_frames("attention,attention:joints", PoolingKind::kAttention);
  const std::vector<double> mean = {.1, -.2};
  model.frames = {mean, {2, .5}};
  FrameFile file = two_files_samples();
  const Explanation e = explain_sample(Context(1), model, file, 1, {.target = "b"});
  ASSERT_THAT(e.saliency.values, SizeIs(4 * 3));
  const auto logit = [&] {
    const FrameSet set = frames_of(model, file);
    const std::int32_t ids[] = {3, 4, 5, 6}, offsets[] = {0, 4};
    Tape tape(Context(1), TapeMode::kInference);
    const Variable y =
        model.model->logits(tape, {.ids = {ids, 4}, .offsets = {offsets, 2}, .frames = set.rows()});
    return double{y.value<float>()[0][1]};
  };
  for (index t = 0; t < 4; ++t) {
    for (index j = 0; j < 3; ++j) {
      double sum = 0;
      for (index f = 0; f < 2; ++f) {
        float& x = file.x.data<float>()[((5 + 1 + t) * 3 + j) * 2 + f];
        const float kept = x;
        constexpr float kStep = 0.02F;
        x = kept + kStep;
        const double above = logit();
        x = kept - kStep;
        const double below = logit();
        x = kept;
        sum += (double{kept} - mean[static_cast<std::size_t>(f)]) * (above - below) /
               (2 * double{kStep});
      }
      EXPECT_NEAR(e.saliency.values[static_cast<std::size_t>(t * 3 + j)], sum, 2e-3) << t << j;
    }
  }
}

TEST(ExplainSample, RolloutIsAShareOfEachTimeStepAndJoint) {
  const ExplainOptions rollout{.saliency = SaliencyMethod::kRollout};
  for (const PoolingKind pooling : {PoolingKind::kMean, PoolingKind::kAttention}) {
    const LoadedClassifier model = untrained_frames("attention,attention:joints", pooling);
    const Explanation e = explain_sample(Context(1), model, two_files_samples(), 1, rollout);
    EXPECT_THAT(e.saliency.values, SizeIs(4 * 3));
    EXPECT_NEAR(sum_of(e.saliency.values), 1, 1e-5);
  }
}

TEST(ExplainSample, HasTheSameBitsForAnyNumberOfThreadsAndWithoutJoints) {
  LoadedClassifier model = untrained_frames("attention,bigru:4", PoolingKind::kAttention, 0);
  model.settings.model.features = 6;
  model.frames = {std::vector<double>(6, 0), std::vector<double>(6, 1)};
  model.model = std::make_unique<Classifier>(model.settings.model, 3);
  const auto numbers = [&](int threads) {
    const Explanation e = explain_sample(Context(threads), model, two_files_samples(0), 1, {});
    EXPECT_EQ(e.layers.at(0).sequences, 1);
    std::vector<float> all = e.layers[0].weights;
    all.insert(all.end(), e.saliency.values.begin(), e.saliency.values.end());
    all.insert(all.end(), e.pooling.begin(), e.pooling.end());
    return all;
  };
  EXPECT_THAT(numbers(1), SizeIs(2 * 16 + 4 + 4));
  EXPECT_EQ(numbers(1), numbers(3));
}

TEST(ExplainSample, RefusesWhatCannotBeExplained) {
  const LoadedClassifier model = untrained_frames("attention", PoolingKind::kMean);
  for (const index sample : {-1, 2}) {
    EXPECT_THROWS(explain_sample(Context(1), model, two_files_samples(), sample, {}), kOptionValue,
                  "--sample");
  }
  FrameFile other = two_files_samples(0);
  EXPECT_THROWS(explain_sample(Context(1), model, other, 0, {}), kInputFormat,
                "expected [sample, time, 3, 2]");
  EXPECT_THROWS(explain_sample(Context(1), classifier(), two_files_samples(), 0, {}),
                kModelWrongKind, "reads texts");
  EXPECT_THROWS(explain_sample(Context(1), untrained_frames("conv3", PoolingKind::kMean),
                               two_files_samples(), 0, {SaliencyMethod::kNone}),
                kOptionValue, "no attention");
}

}  // namespace
}  // namespace fovea
