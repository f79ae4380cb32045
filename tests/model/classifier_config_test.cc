// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "fovea/config/json.h"
#include "fovea/model/classifier.h"
#include "tests/model/classifier_support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

using Task = ClassifierTask;

TEST(ClassifierConfig, KeepsItsFieldsInJson) {
  ClassifierConfig c = published_config(), read;
  c.dropout = 0.125;
  from_json(to_json(c), {"test"}, read);
  EXPECT_EQ(read, c);
  EXPECT_EQ(read.sight, Sight::kWhole) << "no field, but what a classifier is";
  EXPECT_NE(read, ClassifierConfig());
}

TEST(ClassifierConfig, TheLogitsAreThoseOfTheTask) {
  EXPECT_EQ(logit_count(classifier_config(Task::kSingleLabel)), 3);
  EXPECT_EQ(logit_count(classifier_config(Task::kBinary)), 1);
  EXPECT_EQ(logit_count(classifier_config(Task::kMultiLabel)), 3);
  EXPECT_EQ(logit_count(classifier_config(Task::kRegression)), 3);
}

// Spec L15: Embedding(20000, 128), Attention(8, 16), Dense(1). Sines and cosines learn nothing.
TEST(ClassifierConfig, ThePublishedModelHas2609281Parameters) {
  ClassifierConfig c = published_config();
  EXPECT_EQ(parameter_count(c), 2609281);
  c.position = PositionKind::kSinusoidal;
  EXPECT_EQ(parameter_count(c), 2609281);
}

TEST(ClassifierConfig, RefusesWhatDoesNotFit) {
  const auto resolved = [](Task task, auto change) {
    ClassifierConfig c = classifier_config(task);
    change(c);
    return resolve(c);
  };
  EXPECT_THROWS(resolved(Task::kBinary, [](auto& c) { c.classes = 3; }), kOptionValue,
                "--classes: 3 is not 2, as --task binary has");
  EXPECT_THROWS(resolved(Task::kSingleLabel, [](auto& c) { c.classes = 1; }), kOptionValue,
                "--classes: 1 is not in 2 to");
  EXPECT_THROWS(resolved(Task::kRegression, [](auto& c) { c.classes = 0; }), kOptionValue,
                "--classes: 0 is not in 1 to");
  EXPECT_THROWS(resolved(Task::kRegression, [](auto& c) { c.output_dropout = 1; }), kOptionValue,
                "--dropout: 1 is not at least 0 and below 1");
  EXPECT_THROWS(resolved(Task::kRegression, [](auto& c) { c.encoder = "lstn"; }), kOptionValue,
                "there is no layer 'lstn'");
  EXPECT_EQ(resolved(Task::kMultiLabel, [](auto& c) { c.encoder = "bilstm,ff"; }).head_dim, 2);
}

TEST(ClassifierConfig, NgramsFollowFromTheEncoderUnlessTheyAreSaid) {
  ClassifierConfig c = classifier_config();
  c.ngrams = 0;
  EXPECT_EQ(resolve(c).ngrams, 2);
  EXPECT_EQ(resolve(c).ngram_width, 16);
  EXPECT_EQ(resolve(c).buckets, 500000);
  EXPECT_EQ(resolve(resolve(c)), resolve(c));
  EXPECT_EQ(parameter_count(c), 7 * 4 + 500000 * 16 + 3 * (4 + 16) + 3);
  c.encoder = "gru";
  EXPECT_EQ(resolve(c).ngrams, 1);
  EXPECT_EQ(resolve(c).buckets, 0);
  c.ngrams = 3;
  EXPECT_EQ(resolve(c).ngrams, 3);
}

TEST(ClassifierConfig, SizesOfNgramsAreChecked) {
  const auto with = [](index ngrams, index width, index buckets) {
    ClassifierConfig c = classifier_config();
    c.ngrams = ngrams;
    c.ngram_width = width;
    c.buckets = buckets;
    return c;
  };
  EXPECT_THROWS(resolve(with(-1, 0, 0)), kOptionValue, "ngrams");
  EXPECT_THROWS(resolve(with(17, 0, 0)), kOptionValue, "ngrams");
  EXPECT_THROWS(resolve(with(2, -1, 0)), kOptionValue, "ngram-width");
  EXPECT_THROWS(resolve(with(2, 0, -1)), kOptionValue, "buckets");
  EXPECT_THROWS(resolve(with(1, 8, 0)), kOptionValue, "without --ngrams");
  EXPECT_THROWS(resolve(with(1, 0, 8)), kOptionValue, "without --ngrams");
}

}  // namespace
}  // namespace fovea
