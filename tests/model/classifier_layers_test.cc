// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "fovea/model/classifier.h"
#include "fovea/model/ngram_ids.h"
#include "tests/model/classifier_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

std::vector<std::string> names(const ClassifierConfig& config) {
  ParameterSet set({.memory = ParameterMemory::kShapesOnly});
  const ClassifierLayers layers(resolve(config), ParameterScope(set));
  std::vector<std::string> all;
  for (const Parameter* p : set.parameters()) all.push_back(p->name);
  return all;
}

TEST(ClassifierLayers, NamesItsParametersInAFixedOrder) {
  EXPECT_THAT(names(classifier_config()),
              testing::ElementsAre("embedding.tokens", "output.weight", "output.bias"));
  ClassifierConfig c = classifier_config(ClassifierTask::kBinary, "attention,gru");
  c.position = PositionKind::kLearned;
  c.pooling = PoolingKind::kAttention;
  EXPECT_THAT(names(c),
              testing::ElementsAre(
                  "embedding.tokens", "embedding.positions", "encoder.0.attention.qkv.weight",
                  "encoder.0.attention.out.weight", "encoder.0.norm.weight",
                  "encoder.1.recurrent.weight_ih_l0", "encoder.1.recurrent.weight_hh_l0",
                  "encoder.1.recurrent.bias_l0", "encoder.1.recurrent.bias_hn_l0", "norm.weight",
                  "pooling.query", "output.weight", "output.bias"));
  c = classifier_config();
  c.ngrams = 2;
  EXPECT_THAT(names(c), testing::ElementsAre("embedding.tokens", "ngrams.weight", "output.weight",
                                             "output.bias"));
  EXPECT_THAT(names(published_config()),
              testing::ElementsAre("embedding.tokens", "encoder.0.attention.qkv.weight",
                                   "output.weight", "output.bias"));
}

// In a folder that says no revision, shaw means the keys alone.
TEST(ClassifierLayers, ShawHasTheTablesOfItsRevision) {
  const auto tables = [](const char* position, bool first) {
    ClassifierConfig c = classifier_config(ClassifierTask::kBinary, "attention:plain");
    c.position = enum_from_name<PositionKind>(position);
    if (first) c.set_first_revision();
    std::vector<std::string> found = names(c);
    std::erase_if(found,
                  [](const std::string& name) { return name.find("shaw") == std::string::npos; });
    return found;
  };
  const std::string k = "encoder.0.attention.shaw_k", v = "encoder.0.attention.shaw_v";
  EXPECT_THAT(tables("shaw", false), testing::ElementsAre(k, v));
  EXPECT_THAT(tables("shaw", true), testing::ElementsAre(k));
  EXPECT_THAT(tables("shaw-keys", false), testing::ElementsAre(k));
}

// Kim 2014, by hand: the largest relu(w . window + b) of each text, over windows within it. The
// first text is shorter than one window, and padded with zeros, as all were before revision 3.
TEST(ClassifierLayers, ATextCnnTakesTheMaximaOfItsWindows) {
  ClassifierConfig c = classifier_config(ClassifierTask::kBinary, "textcnn:1,3:width=1");
  ClassifierConfig last = c;
  last.pooling = PoolingKind::kLast;
  EXPECT_THROWS(resolve(last), kOptionValue,
                "--pooling last: textcnn in --encoder takes the maximum");
  EXPECT_EQ(resolve(c).pooling, PoolingKind::kMax);
  const std::vector<std::int32_t> all = {4, 1, 5, 2, 3, 1}, offsets = {0, 2, 6};
  double differ = 0;  // how much the logits of the second text do, with both revisions
  for (const auto revision : {Revision::kSecond, Revision::kThird}) {
    c.revision = revision;
    const Classifier model(c, 1);
    const auto of = [&](std::size_t n) { return model.parameters()[n]->value.vec<float>(); };
    const auto words = of(0), one = of(1), three = of(3), weight = of(5);
    EXPECT_EQ(model.parameters()[3]->name, "encoder.0.textcnn.windows.1.weight");
    const index C = c.width;
    const auto product = [&](const float* w, index id) {
      double sum = 0;
      for (index k = 0; k < C; ++k) sum += double{w[k]} * words[id * C + k];
      return sum;
    };
    Tape tape(Context(1), TapeMode::kInference);
    const Variable logits = model.logits(tape, {.ids = all, .offsets = offsets, .samples = {}});
    for (std::size_t s = 0; s < 2; ++s) {
      const std::span ids =
          std::span(all).subspan(static_cast<std::size_t>(offsets[s]),
                                 static_cast<std::size_t>(offsets[s + 1] - offsets[s]));
      const auto length = static_cast<index>(ids.size());
      double of_one = 0, of_three = 0;  // biases start at 0
      for (const std::int32_t id : ids) of_one = std::max(of_one, product(one.data, id));
      const index ends = revision == Revision::kThird && length >= 3 ? 1 : 0;
      for (index center = ends; center < length - ends; ++center) {
        double sum = 0;
        for (index row = std::max<index>(center - 1, 0); row < std::min(center + 2, length);
             ++row) {
          sum += product(&three[(row - center + 1) * C], ids[static_cast<std::size_t>(row)]);
        }
        of_three = std::max(of_three, sum);
      }
      const float logit = logits.value<float>()[static_cast<index>(s)][0];
      EXPECT_NEAR(logit, double{weight[0]} * of_one + double{weight[1]} * of_three + of(6)[0], 1e-6)
          << "text " << s;
      if (s == 1) differ = std::abs(logit - differ);
    }
  }
  EXPECT_GT(differ, 1e-4);
}

// Keras starts each of the three projections, [128, 128], and the table by itself.
TEST(ClassifierLayers, ThePublishedModelStartsAsInKeras) {
  ParameterSet set({.seed = 1});
  const ClassifierLayers layers(resolve(published_config()), ParameterScope(set));
  const double bounds[] = {0.05, std::sqrt(6.0 / 256), std::sqrt(6.0 / 129), 0};
  for (std::size_t n = 0; n < 4; ++n) {
    double most = 0;
    for (const float x : set.parameters()[n]->value.vec<float>()) {
      most = std::max(most, std::abs(double{x}));
    }
    EXPECT_LE(most, bounds[n] * 1.000001);
    EXPECT_GE(most, bounds[n] * 0.95);
  }
}

// By hand: what output makes of the mean of the words, and of the sum of the two bigrams and the
// trigram over sqrt(3).
TEST(ClassifierLayers, NgramsStandBesideThePooledText) {
  ClassifierConfig c = classifier_config(ClassifierTask::kBinary);
  c.ngrams = 3;
  c.ngram_width = 2;
  c.buckets = 50;
  const Classifier model(c, 1);
  const std::vector<std::int32_t> ids = {4, 1, 5}, offsets = {0, 3};
  std::vector<std::int32_t> rows(3);
  hash_ngrams(Context(1), {ids, offsets}, {3, 50}, {rows.data(), 3});
  const auto of = [&](std::size_t n) { return model.parameters()[n]->value.vec<float>(); };
  const auto words = of(0), table = of(1), weight = of(2);
  ASSERT_EQ(weight.size, 6);
  double expected = of(3)[0];
  for (const std::int32_t id : ids) {
    for (index k = 0; k < 4; ++k) expected += double{weight[k]} * words[id * 4 + k] / 3;
  }
  for (const std::int32_t row : rows) {
    for (index k = 0; k < 2; ++k) {
      expected += double{weight[4 + k]} * table[row * 2 + k] / std::sqrt(3.0);
    }
  }
  Tape tape(Context(1), TapeMode::kInference);
  EXPECT_NEAR(model.logits(tape, {.ids = ids, .offsets = offsets}).value<float>()[0][0], expected,
              1e-8);
}

// With n-grams and without, for every pooling.
TEST(ClassifierLayers, ATableOfTokensGivesTheBitsOfTheForward) {
  for (const auto& [pooling, name] : enum_names(PoolingKind{})) {
    for (const index ngrams : {1, 3}) {
      SCOPED_TRACE(fmt::format("{} pooling, {} n-grams", name, ngrams));
      ClassifierConfig c =
          classifier_config(ClassifierTask::kSingleLabel, "attention:plain:no-output");
      c.pooling = pooling;
      c.ngrams = ngrams;
      if (ngrams > 1) {
        c.ngram_width = 2;
        c.buckets = 11;
      }
      const Classifier model(c, 1);
      const OwnedTexts batch({3, 0, 8, 1}, c);
      Tape tape(Context(2), TapeMode::kInference);
      const auto plain = to_vector(model.predictions(tape, batch.texts()).value<float>());
      ASSERT_EQ(model.token_table_columns(), 12);
      const Tensor table = model.token_table(Context(1));
      const auto found = to_vector(model.predictions(tape, batch.texts(), table).value<float>());
      EXPECT_EQ(found, plain);
      EXPECT_NE(found[0], found[6]);  // texts of 3 and 8 tokens
    }
  }
}

}  // namespace
}  // namespace fovea
