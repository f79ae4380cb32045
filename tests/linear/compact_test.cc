// SPDX-License-Identifier: Apache-2.0
#include "fovea/linear/compact.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "tests/linear/support.h"
#include "tests/support/throws.h"

namespace fovea {
namespace {

constexpr index kRoomy = 100'000;

// Texts of many words, most of which say nothing.
const std::vector<std::string>& texts() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 60; ++i) {
      std::string text = i % 2 == 0 ? "lovely" : "dreadful";
      for (int w = 0; w < 12; ++w) text += " word" + std::to_string((i * 7 + w * w) % 90);
      made.push_back(std::move(text));
    }
    return made;
  }();
  return all;
}

LinearModel model_of(index classes) {
  NgramFeatures features = learn_features(texts(), rules_of("1", "2-3"), classes);
  training_rows(Context(1), texts(), features);
  LinearWeights weights{.task = ClassifierTask::kSingleLabel, .classes = classes};
  for (index column = 0; column < features.columns(); ++column) {
    const std::string name = features.name(column);
    for (index k = 0; k < classes; ++k) {
      const double noise = 0.01 * std::sin(static_cast<double>(column * classes + k));
      const double told = name == "lovely" ? 4.0 : name == "dreadful" ? -3.0 : noise;
      weights.weights.push_back(static_cast<float>(k == 0 ? told : noise));
    }
  }
  weights.prior.assign(static_cast<std::size_t>(classes), 0.125F);
  weights.thresholds.assign(static_cast<std::size_t>(classes), 0.25F);
  weights.isotonic.assign(static_cast<std::size_t>(classes), {{-1, 2}, {0.25F, 0.5F}});
  return {std::move(features), std::move(weights)};
}

ClassifierConfig config_of(const LinearModel& model) {
  ClassifierConfig config;
  config.task = model.weights().task;
  config.classes = model.weights().classes;
  return config;
}

Safetensors file_of(const LinearModel& model) { return {compact_tensors(model), {}}; }

LinearModel read_again(const LinearModel& model) {
  return linear_model_from(unpacked(file_of(model), "m"), model.features().rules, config_of(model),
                           "m");
}

std::vector<double> logits_of(const LinearModel& model, std::string_view text) {
  FeatureReader reader(model.features());
  std::vector<double> logits(static_cast<std::size_t>(model.weights().outputs()));
  model.logits(reader.read(text), logits);
  return logits;
}

std::vector<std::string> names_of(const LinearModel& model) {
  std::vector<std::string> names;
  for (index n = 0; n < model.features().bias_column(); ++n) {
    names.push_back(model.features().name(n));
  }
  return names;
}

TEST(Compact, AByteOfEachNumberIsEnough) {
  const LinearModel model = model_of(3), kept = pruned(model, kRoomy);
  EXPECT_THAT(names_of(kept), ::testing::UnorderedElementsAreArray(names_of(model)));
  const LinearModel read = read_again(kept);
  EXPECT_EQ(names_of(read), names_of(kept));
  EXPECT_EQ(read.weights().thresholds, model.weights().thresholds);
  ASSERT_EQ(read.weights().isotonic.size(), 3U);
  EXPECT_EQ(read.weights().isotonic[2].probabilities, model.weights().isotonic[2].probabilities);
  for (const std::string& text : texts()) {
    const std::vector<double> expected = logits_of(model, text), got = logits_of(read, text);
    for (std::size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(got[k], expected[k], 0.03);
  }
}

TEST(Compact, WhatMattersIsKeptAndTheRestStaysInTheLength) {
  const LinearModel model = model_of(3);
  const index most = 2300;
  const LinearModel few = pruned(model, most);
  EXPECT_LT(few.features().columns(), model.features().columns() / 4);
  EXPECT_THAT(names_of(few), ::testing::IsSupersetOf({"lovely", "dreadful"}));
  for (const std::string& text : texts()) {
    EXPECT_NEAR(logits_of(few, text)[0], logits_of(model, text)[0], 0.25) << text;
  }
  EXPECT_THROWS(pruned(model, 100), kOptionValue, "no room for an n-gram");
}

TEST(Compact, DamagedFilesAreRefused) {
  const LinearModel model = pruned(model_of(3), kRoomy);
  const auto damaged = [&](const std::string& name, const std::vector<std::uint8_t>& bytes) {
    Safetensors file = file_of(model);
    for (NamedTensor& tensor : file.tensors) {
      if (tensor.name != name) continue;
      tensor.tensor = Tensor::of<std::uint8_t>({static_cast<index>(bytes.size())},
                                               std::span<const std::uint8_t>(bytes));
    }
    return file;
  };
  const auto read = [&](const Safetensors& file) {
    linear_model_from(unpacked(file, "m"), model.features().rules, config_of(model), "m");
  };
  EXPECT_THROWS(read(damaged("words.sorted_names", {1, 'a', '\n'})), kModelDamaged,
                "byte 0 says that 1 bytes");
  EXPECT_THROWS(read(damaged("words.sorted_names", {0, 'a', '\n', 2, 'b', '\n'})), kModelDamaged,
                "byte 3 says");
  EXPECT_THROWS(read(damaged("words.sorted_names", {0, 'a'})), kModelDamaged, "has no end");
  EXPECT_THROWS(read(damaged("words.sorted_names", {0, 'a', '\n'})), kModelDamaged, "words.idf");
  EXPECT_THROWS(read(damaged("weight.levels", {1, 2})), kModelDamaged, "no rows of 3");
  EXPECT_THROWS(read(damaged("weight.levels", {1, 2, 3})), kModelDamaged, "weights");
  EXPECT_THROWS(read(damaged("weight.largest", {1, 2, 3})), kModelDamaged, "weight.largest");
}

}  // namespace
}  // namespace fovea
