// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fovea/reference/gradcheck.h"
#include "tests/isa.h"
#include "tests/model/classifier_support.h"
#include "tests/support/part_range.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Task = ClassifierTask;

// Every pooling with every task, over encoders that see the whole text.
std::vector<ClassifierConfig> forms() {
  std::vector<ClassifierConfig> all;
  const char* const encoders[] = {"", "attention:scale=1:no-output:plain:head-dim=3",
                                  "conv3:activation=gelu+bilstm:3", "transformer:window=1",
                                  "birnn:3:layers=2,attention:position=t5"};
  std::size_t number = 0;
  for (const auto& [task, task_name] : enum_names(Task{})) {
    for (const auto& [pooling, pooling_name] : enum_names(PoolingKind{})) {
      ClassifierConfig c = classifier_config(task, encoders[number++ % 5]);
      c.pooling = pooling;
      c.dropout = c.output_dropout = 0.2;
      c.t5_buckets = 4;
      c.ngrams = static_cast<index>(1 + number % 3);  // forms of every task have some
      if (c.ngrams > 1) {
        c.ngram_width = 2;
        c.buckets = 11;
      }
      if (number % 2 == 0) c.position = PositionKind::kLearned;
      all.push_back(c);
    }
  }
  all.push_back(classifier_config(Task::kSingleLabel, "conv3,textcnn:1,4:width=3"));
  all.push_back(classifier_config(Task::kSingleLabel, "attention:dilation=2,attention:strided=2"));
  all.push_back(classifier_config(Task::kSingleLabel, "ff,bilstm:3:layers=2"));
  all.back().pooling = PoolingKind::kLast;
  all.push_back(classifier_config(Task::kSingleLabel, "attention:position=shaw"));
  all.back().shaw_clip = 2;
  const char* const readers[] = {"", "attention", "textcnn:2:width=3", "bigru:3"};
  for (const auto& [pairs, pairs_name] : enum_names(PairEncoder{})) {
    if (pairs == PairEncoder::kNone) continue;
    for (const char* const reader : readers) {
      ClassifierConfig c =
          classifier_config(number++ % 2 == 0 ? Task::kRegression : Task::kBinary, reader);
      c.pair_encoder = pairs;
      c.dropout = c.output_dropout = 0.2;
      c.ngrams = *reader == 0 ? 2 : 1;
      if (c.ngrams > 1) {
        c.ngram_width = 2;
        c.buckets = 11;
      }
      all.push_back(c);
    }
  }
  return all;
}

class EveryClassifier : public testing::TestWithParam<ClassifierConfig> {};

TEST_P(EveryClassifier, GradientIsThatOfTheLoss) {
  const ClassifierConfig& c = GetParam();
  const Classifier model(c, 1, DType::kFloat64);
  for (Parameter* p : model.parameters()) {  // a fresh model is too flat to tell errors apart
    Random random(3, RandomUse::kTest, p->value.size());
    const double least = has_range(p->name) ? 0.1 : -1;
    for (double& x : p->value.vec<double>()) x = random.uniform(least, 1);
  }
  OwnedTexts batch({3, 0, 5, 1}, c);
  batch.labels[3] = -1;
  const double weights[] = {2, 0.5, 1};
  ClassifierLossOptions options{.scale = 0.2, .dropout = {1, 2, 0}};
  if (c.task != Task::kRegression) {
    options.class_weights = {weights, c.classes};
    options.label_smoothing = 0.1;
  }
  const auto report = check_gradients(Context(2), model.parameters(), [&](Tape& tape) {
    return model.loss(tape, batch.view(), options);
  });
  EXPECT_LE(report.error, 1e-7) << report.where;
}

std::vector<float> predictions(const Classifier& model, const OwnedTexts& batch, int threads = 2) {
  Tape tape(Context(threads), TapeMode::kInference);
  return to_vector(model.predictions(tape, batch.texts()).value<float>());
}

TEST_P(EveryClassifier, PredictsTheSameForATextAloneAndAmongOthers) {
  const ClassifierConfig& c = GetParam();
  for_each_isa([&] {
    const Classifier model(c, 1);
    const OwnedTexts all({3, 0, 8, 1, 7, 2, 8, 8, 4, 5}, c);
    const auto together = predictions(model, all, 1);
    for (const int threads : {2, 3, 8}) EXPECT_EQ(predictions(model, all, threads), together);
    for (std::size_t s = 0; s < 10; ++s) {
      OwnedTexts one({}, c);
      one.tokens.ids.assign(all.tokens.ids.begin() + all.tokens.offsets[s],
                            all.tokens.ids.begin() + all.tokens.offsets[s + 1]);
      one.tokens.offsets.push_back(static_cast<std::int32_t>(one.tokens.ids.size()));
      one.tokens.samples.push_back(9);
      const auto at = together.begin() + static_cast<index>(s) * c.classes;
      EXPECT_EQ(predictions(model, one), std::vector<float>(at, at + c.classes)) << s;
    }
  });
}

// The output of a bi-encoder sees u, v, |u - v| and u * v, where u and v are the results of the
// same layers for each text alone.
TEST(PairClassifier, BiEncoderComparesWhatEachTextBecomesAlone) {
  ClassifierConfig c = classifier_config(Task::kRegression, "conv3,attention");
  c.pair_encoder = PairEncoder::kBi;
  const Classifier model(c, 1, DType::kFloat64);
  ClassifierConfig single = c;  // of its layers, with the identity as output
  single.pair_encoder = PairEncoder::kNone;
  single.classes = c.width;
  const Classifier alone(single, 1, DType::kFloat64);
  for (std::size_t n = 0; n + 2 < model.parameters().size(); ++n) {
    const auto from = model.parameters()[n]->value.vec<double>();
    std::copy(from.begin(), from.end(), alone.parameters()[n]->value.vec<double>().begin());
    ++alone.parameters()[n]->version;
  }
  const std::size_t last = alone.parameters().size() - 2;
  const auto identity = alone.parameters()[last]->value.vec<double>();
  for (index i = 0; i < identity.size; ++i) identity[i] = i % (c.width + 1) == 0 ? 1 : 0;
  ++alone.parameters()[last]->version;
  const std::vector<std::int32_t> ids = {1, 2, 3, 6, 4, 5};
  const std::int32_t whole[] = {0, 6}, apart[] = {0, 4, 6};
  Tape tape(Context(1), TapeMode::kInference);
  const auto uv = to_vector(
      alone.logits(tape, {.ids = {ids.data(), 6}, .offsets = {apart, 3}}).value<double>());
  const auto weight = model.parameters()[model.parameters().size() - 2]->value.vec<double>();
  const auto W = static_cast<std::size_t>(c.width);
  for (index k = 0; k < c.classes; ++k) {
    double expected = 0;
    for (std::size_t i = 0; i < W; ++i) {
      const double u = uv[i], v = uv[W + i];
      const double* const row = weight.begin() + k * 4 * c.width;
      expected +=
          row[i] * u + row[W + i] * v + row[2 * W + i] * std::abs(u - v) + row[3 * W + i] * u * v;
    }
    Tape other(Context(1), TapeMode::kInference);
    const Variable y = model.logits(other, {.ids = {ids.data(), 6}, .offsets = {whole, 2}});
    EXPECT_NEAR(y.value<double>()[0][k], expected, 1e-12);
  }
}

TEST(PairClassifier, CrossEncoderKnowsTheOrderOfBothTexts) {
  ClassifierConfig c = classifier_config(Task::kRegression);  // a bag: only segments say which
  c.pair_encoder = PairEncoder::kCross;
  const Classifier model(c, 1);
  EXPECT_EQ(model.parameters()[1]->name, "segments.tokens");
  const auto of = [&](std::vector<std::int32_t> ids) {
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(ids.size())};
    Tape tape(Context(1), TapeMode::kInference);
    return to_vector(model
                         .predictions(tape, {.ids = {ids.data(), static_cast<index>(ids.size())},
                                             .offsets = {offsets, 2}})
                         .value<float>());
  };
  EXPECT_NE(of({1, 2, 6, 3}), of({3, 6, 1, 2}));
  EXPECT_THROWS(of({1, 2, 3}), kShape, "no separator");
}

struct Step {
  std::vector<float> loss;
  std::vector<std::vector<float>> gradients;
  friend bool operator==(const Step&, const Step&) = default;
};

Step step(const ClassifierConfig& c, int threads) {
  const Classifier model(c, 1);
  const OwnedTexts batch({7, 1, 8, 5, 8, 8, 3, 8, 2, 8}, c);
  Tape tape{Context(threads)};
  const Variable loss = model.loss(tape, batch.view(), {.scale = 0.1, .dropout = {1, 2, 0}});
  tape.backward(loss);
  Step result{to_vector(loss.value<float>()), {}};
  for (Parameter* p : model.parameters()) {
    result.gradients.push_back(to_vector(p->finished_gradient().vec<float>()));
  }
  return result;
}

TEST_P(EveryClassifier, HasTheSameBitsForAnyNumberOfThreads) {
  ClassifierConfig c = GetParam();
  c.width = 96;
  c.vocabulary = 300;
  const Step one = step(c, 1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(step(c, threads), one) << threads;
}

INSTANTIATE_TEST_SUITE_P(Forms, EveryClassifier, testing::ValuesIn(forms()), [](const auto& test) {
  std::string name = fmt::format("{}_{}_{}", test.index, to_string(test.param.task),
                                 to_string(test.param.pooling));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The loss of every task from the logits, by its formula.
double by_formula(Task task, std::span<const double> x, const OwnedTexts& batch, std::size_t s) {
  const auto log_sigmoid = [](double z) { return -std::log1p(std::exp(-z)); };
  double loss = 0, sum = 0;
  if (task == Task::kBinary) return -log_sigmoid(batch.labels[s] == 1 ? x[0] : -x[0]);
  for (const double z : x) sum += std::exp(z);
  if (task == Task::kSingleLabel) {
    return std::log(sum) - x[static_cast<std::size_t>(batch.labels[s])];
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double y = batch.values[s * x.size() + k];
    loss += task == Task::kRegression ? (x[k] - y) * (x[k] - y)
                                      : -y * log_sigmoid(x[k]) - (1 - y) * log_sigmoid(-x[k]);
  }
  return loss;
}

TEST(Classifier, TheMeanLossIsThatOfTheTask) {
  for (const auto& [task, name] : enum_names(Task{})) {
    const ClassifierConfig c = classifier_config(task, "bigru");
    const Classifier model(c, 1, DType::kFloat64);
    const OwnedTexts batch({3, 5, 1, 8}, c);
    Tape tape(Context(1), TapeMode::kInference);
    const auto x = to_vector(model.logits(tape, batch.texts()).value<double>());
    const std::size_t K = x.size() / 4;
    EXPECT_EQ(static_cast<index>(K), logit_count(c));
    double sum = 0;
    for (std::size_t s = 0; s < 4; ++s)
      sum += by_formula(task, std::span(x).subspan(s * K, K), batch, s);
    const double weight = model.loss_weight(batch.view());
    const bool each = task == Task::kMultiLabel || task == Task::kRegression;
    EXPECT_EQ(weight, each ? 12 : 4) << name;
    const Variable loss = model.loss(tape, batch.view(), {.scale = 1 / weight});
    EXPECT_NEAR(loss.value<double>()[0][0], sum / weight, 1e-12) << name;
  }
}

// A single logit is the difference of two: the same loss for weighted, smoothed and missing labels.
TEST(Classifier, BinaryIsSingleLabelOfTwoClassesWithOneLogit) {
  const ClassifierConfig one = classifier_config(Task::kBinary);
  ClassifierConfig two = classifier_config(Task::kSingleLabel);
  two.classes = 2;
  const Classifier single(one, 1, DType::kFloat64), pair(two, 1, DType::kFloat64);
  const auto parameter = [](const Classifier& model, std::size_t n) {
    return model.parameters()[n]->value.vec<double>();
  };
  for (const double& x : parameter(single, 0)) {
    parameter(pair, 0)[&x - parameter(single, 0).data] = x;
  }
  std::fill_n(parameter(pair, 1).data, 4, 0.0);
  std::copy_n(parameter(single, 1).data, 4, parameter(pair, 1).data + 4);
  OwnedTexts batch({3, 5, 1, 8}, one);
  batch.labels[2] = -1;
  const double weights[] = {3, 0.5};
  const ClassifierLossOptions options{.class_weights = {weights, 2}, .label_smoothing = 0.2};
  const auto loss = [&](const Classifier& model) {
    Tape tape(Context(1), TapeMode::kInference);
    return model.loss(tape, batch.view(), options).value<double>()[0][0];
  };
  EXPECT_NEAR(loss(single), loss(pair), 1e-12);
  EXPECT_EQ(single.loss_weight(batch.view(), options), pair.loss_weight(batch.view(), options));
  Tape tape(Context(1), TapeMode::kInference);
  const auto p = to_vector(single.predictions(tape, batch.texts()).value<double>());
  const auto q = to_vector(pair.predictions(tape, batch.texts()).value<double>());
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(p[i], q[i], 1e-14);
}

TEST(Classifier, LabelsThatAreNotKnownDoNotCount) {
  ClassifierConfig c = classifier_config(Task::kMultiLabel);
  const Classifier model(c, 1);
  OwnedTexts batch({3, 5}, c);
  EXPECT_EQ(model.loss_weight(batch.view()), 6);
  batch.values[1] = batch.values[5] = -1;
  EXPECT_EQ(model.loss_weight(batch.view()), 4);
}

TEST(Classifier, WithoutAnEncoderIsABagOfWords) {
  const Classifier model(classifier_config(), 1);
  OwnedTexts batch({5}, model.config());
  const auto before = predictions(model, batch);
  std::reverse(batch.tokens.ids.begin(), batch.tokens.ids.end());
  const auto after = predictions(model, batch);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_NEAR(before[k], after[k], 1e-6);
}

// The published model in plain loops: heads of `D` columns side by side, no projection behind them.
double published_by_formula(const Classifier& model, std::span<const std::int32_t> ids,
                            double scale) {
  constexpr index D = 3, H = 2, C = 4;
  const auto parameter = [&](std::size_t n) { return model.parameters()[n]->value.rows<double>(); };
  const auto table = parameter(0), qkv = parameter(1), output = parameter(2);
  const auto T = static_cast<index>(ids.size());
  const auto projected = [&](index row, index column) {
    double sum = 0;
    for (index c = 0; c < C; ++c)
      sum += table[ids[static_cast<std::size_t>(row)]][c] * qkv[column][c];
    return sum;
  };
  double logit = model.parameters()[3]->value.vec<double>()[0];
  for (index h = 0; h < H; ++h)
    for (index i = 0; i < T; ++i) {
      std::vector<double> weights;
      double total = 0;
      for (index j = 0; j < T; ++j) {
        double score = 0;
        for (index d = h * D; d < (h + 1) * D; ++d)
          score += projected(i, d) * projected(j, H * D + d);
        total += weights.emplace_back(std::exp(scale * score));
      }
      for (index j = 0; j < T; ++j)
        for (index d = h * D; d < (h + 1) * D; ++d) {
          const double value = weights[static_cast<std::size_t>(j)] * projected(j, 2 * H * D + d);
          logit += value / total / static_cast<double>(T) * output[0][d];
        }
    }
  return logit;
}

TEST(Classifier, ThePublishedModelIsItsFormula) {
  for (const bool scaled : {false, true}) {
    ClassifierConfig c = classifier_config(Task::kBinary, "attention:head-dim=3:no-output:plain");
    if (!scaled) c.encoder += ":scale=1";
    const Classifier model(c, 1, DType::kFloat64);
    for (Parameter* p : model.parameters()) {
      Random random(4, RandomUse::kTest, p->value.size());
      for (double& x : p->value.vec<double>()) x = random.uniform(-1, 1);
    }
    const OwnedTexts batch({6}, c);
    Tape tape(Context(1), TapeMode::kInference);
    EXPECT_NEAR(model.logits(tape, batch.texts()).value<double>()[0][0],
                published_by_formula(model, batch.tokens.ids, scaled ? 1 / std::sqrt(3) : 1),
                1e-13);
  }
}

// The published model averages over all 80 rows, with the padding as tokens.
TEST(Classifier, ThePublishedModelHasItsSizeAndItsWeights) {
  const Classifier model(published_config(), 1);
  EXPECT_EQ(parameter_count(published_config()), 2609281);
  const OwnedTexts batch({80, 80}, model.config());
  const auto p = predictions(model, batch);
  EXPECT_NEAR(p[0] + p[1], 1, 1e-6);
}

TEST(Classifier, ShowsTheWeightsOfItsTokens) {
  ClassifierConfig c = classifier_config(Task::kSingleLabel, "gru");
  c.pooling = PoolingKind::kAttention;
  const Classifier model(c, 1);
  const OwnedTexts batch({4, 2}, c);
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_THAT(model.token_weights(tape, batch.texts()),
              testing::ElementsAre(0.25, 0.25, 0.25, 0.25, 0.5, 0.5))
      << "a fresh query weighs all alike";
}

TEST(Classifier, ABatchWithoutTextsHasNoLossAndNoGradient) {
  const Classifier model(classifier_config(), 1);
  const OwnedTexts batch({}, model.config());
  Tape tape{Context(1)};
  const Variable loss = model.loss(tape, batch.view());
  tape.backward(loss);
  EXPECT_EQ(loss.value<float>()[0][0], 0);
  EXPECT_FALSE(model.parameters()[0]->has_gradient);
  EXPECT_EQ(model.loss_weight(batch.view()), 0);
}

TEST(Classifier, TextsWithoutTokensAreAllAlike) {
  for (const char* encoder : {"", "attention", "conv3", "bilstm", "transformer"}) {
    const ClassifierConfig c = classifier_config(Task::kSingleLabel, encoder);
    for (const auto& [pooling, name] : enum_names(PoolingKind{})) {
      ClassifierConfig own = c;
      own.pooling = pooling;
      const Classifier model(own, 1);
      const auto p = predictions(model, OwnedTexts({0, 0}, own));
      for (const float x : p) EXPECT_NEAR(x, 1 / 3.0, 1e-6) << encoder << " " << name;
      Tape tape{Context(1)};
      tape.backward(model.loss(tape, OwnedTexts({0, 0}, own).view()));
    }
  }
}

TEST(Classifier, DropsOtherThingsInEveryUpdate) {
  ClassifierConfig c = classifier_config();
  c.width = 64;
  c.output_dropout = 0.5;
  const Classifier model(c, 1);
  const OwnedTexts batch({8, 5}, c);
  const auto loss = [&](std::uint64_t update, TapeMode mode) {
    Tape tape(Context(2), mode);
    return model.loss(tape, batch.view(), {.dropout = {1, update, 0}}).value<float>()[0][0];
  };
  EXPECT_EQ(loss(3, TapeMode::kTrain), loss(3, TapeMode::kTrain));
  EXPECT_NE(loss(3, TapeMode::kTrain), loss(4, TapeMode::kTrain));
  EXPECT_EQ(loss(3, TapeMode::kInference), loss(4, TapeMode::kInference));
}

TEST(Classifier, RefusesWhatDoesNotFit) {
  const Classifier model(classifier_config(), 1);
  Tape tape{Context(1)};
  OwnedTexts batch({3, 4}, model.config());
  EXPECT_THROWS(model.loss(tape, OwnedTexts({9}, model.config()).view()), kShape,
                "sequence 0 has 9 tokens; the model sees at most 8");
  batch.labels.pop_back();
  EXPECT_THROWS(model.loss(tape, batch.view()), kShape, "classifier: 1 labels for 2 texts");
  batch.labels.push_back(3);
  EXPECT_THROWS(model.loss(tape, batch.view()), kShape, "targets[1] is 3");
  const Classifier binary(classifier_config(Task::kBinary), 1);
  batch.labels = {0, 2};
  EXPECT_THROWS(binary.loss(tape, batch.view()), kShape, "targets[1] is 2");
  const Classifier numbers(classifier_config(Task::kRegression), 1);
  batch.values.resize(3);
  EXPECT_THROWS(numbers.loss(tape, {batch.texts(), {}, {batch.values.data(), 1, 3}}), kShape,
                "values must be [2, 3], a row for each text; they are [1, 3]");
  EXPECT_THROWS(
      numbers.loss(tape, OwnedTexts({3}, numbers.config()).view(), {.label_smoothing = 0.1}),
      kShape, "a regression has no class weights");
  const double weights[] = {1, 2};
  EXPECT_THROWS(
      model.loss(tape, OwnedTexts({3}, model.config()).view(), {.class_weights = {weights, 2}}),
      kShape, "2 class weights for 3 classes");
}

}  // namespace
}  // namespace fovea
