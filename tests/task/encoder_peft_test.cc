// SPDX-License-Identifier: Apache-2.0
// Adapters of PEFT in a program. What PEFT answers is compared by
// tests/python/test_encoder_peft.py, and what commands do by tests/cli/test_encoder_peft.py.
#include "fovea/task/encoder_peft.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <variant>

#include "fovea/models.h"
#include "tests/support/throws.h"
#include "tests/task/tiny_encoder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::empty(shape);
  std::ranges::fill(tensor.vec<float>(), value);
  return tensor;
}

std::string config_of(std::string_view task) {
  return fmt::format(
      R"({{"peft_type": "LORA", "r": 1, "lora_alpha": 2, "bias": "none", "task_type": {}}})", task);
}

// A folder of adapters of this module, and of what it holds whole.
std::string write_adapters(const TestFolder& folder, std::string_view name, std::string_view task,
                           std::string_view module, std::vector<NamedTensor> tensors = {}) {
  const fs::path to = folder / name;
  create_folders(to);
  tensors.push_back({fmt::format("base_model.model.{}.lora_A.weight", module), filled({1, 8}, 3)});
  tensors.push_back({fmt::format("base_model.model.{}.lora_B.weight", module), filled({8, 1}, 5)});
  write_file_atomically(to / kPeftFiles[1], config_of(task));
  write_file_atomically(to / kPeftFiles[0], safetensors_bytes(tensors));
  return to.string();
}

std::vector<NamedTensor> head_of(index outputs) {
  return {{"base_model.model.classifier.weight", filled({outputs, 8}, 0.5F)},
          {"base_model.model.classifier.bias", filled({outputs}, 0.25F)},
          {"base_model.model.bert.pooler.dense.weight", filled({8, 8}, 0.125F)},
          {"base_model.model.bert.pooler.dense.bias", filled({8}, 0)}};
}

Bert tiny_bert() {
  return Bert({.vocabulary = 16, .width = 8, .layers = 2, .heads = 2, .ff = 12, .block = 24},
              {.seed = 3});
}

constexpr std::string_view kKey = "encoder.layer.1.attention.self.key";

TEST(EncoderPeftTest, KeysAreTheSecondThirdOfAProduct) {
  const TestFolder folder;
  const fs::path base = write_bert(folder);
  const std::vector<std::string> choices = {write_adapters(folder, "one", "null", kKey),
                                            write_adapters(folder, "two", "null", kKey) + "=-0.5"};
  const Bert before = tiny_bert(), after = tiny_bert();
  EncoderPeft(base, choices, BertHead::kNone).apply(after.parameters());
  for (std::size_t n = 0; n < before.parameters().size(); ++n) {
    const Parameter& one = *before.parameters()[n];
    const Vec<const float> x = one.value.vec<float>(),
                           y = after.parameters()[n]->value.vec<float>();
    const bool changed = one.name == "blocks.1.attention.qkv.weight";
    for (index i = 0; i < x.size; ++i) {
      const bool of_key = changed && i / 8 >= 8 && i / 8 < 16;
      EXPECT_NEAR(y[i] - x[i], of_key ? (1 - 0.5) * 2 * 3 * 5 : 0, 1e-5) << one.name << ' ' << i;
    }
  }
}

TEST(EncoderPeftTest, AHeadMakesAClassifierOfAnEncoder) {
  const TestFolder folder;
  const fs::path base = write_bert(folder);
  const std::string adapters =
      write_adapters(folder, "head", "\"SEQ_CLS\"", fmt::format("bert.{}", kKey), head_of(3));
  EXPECT_EQ(models::kind_of(base), models::Kind::kEncoder);
  EXPECT_EQ(models::kind_of(base, {adapters}), models::Kind::kClassifier);
  const auto model = std::get<models::Classifier>(models::load(base, {.adapters = {adapters}}));
  EXPECT_THAT(model.labels(), testing::ElementsAre("LABEL_0", "LABEL_1", "LABEL_2"));
  EXPECT_NEAR(model.classify({"a fine film"})[0].values[2], 1.0 / 3, 1e-6);  // all rows are equal
  const EncoderPeft without(base, std::vector{adapters}, BertHead::kNone);
  EXPECT_EQ(without.head(), nullptr);
  without.apply(tiny_bert().parameters());
}

TEST(EncoderPeftTest, AHeadThatSaysNotWhatItReads) {
  const TestFolder folder;
  const fs::path base = write_bert(folder);
  const std::vector<std::string> adapters = {
      write_adapters(folder, "head", "null", kKey, head_of(2))};
  EXPECT_THROWS(kind_of_model(base, adapters), kModelWrongKind, "no task_type says whether");
  EXPECT_EQ(kind_of_model(base, {}), ModelKind::kSentenceEncoder);
  const EncoderPeft of_texts(base, adapters, BertHead::kText);
  ASSERT_NE(of_texts.head(), nullptr);
  EXPECT_EQ(of_texts.head()->outputs, 2);
  EXPECT_THAT(of_texts.head()->parameters,
              testing::ElementsAre("output.bias", "output.weight", "pooler.bias", "pooler.weight"));
}

TEST(EncoderPeftTest, WhatDoesNotFit) {
  const TestFolder folder;
  const fs::path base = write_bert(folder);
  const auto apply = [&](const std::string& one) {
    const Bert model = tiny_bert();
    EncoderPeft(base, std::vector{one}, BertHead::kNone).apply(model.parameters());
  };
  EXPECT_THROWS(apply(write_adapters(folder, "a", "null", "encoder.layer.2.output.dense")),
                kModelWrongKind, "adapters of 'encoder.layer.2.output.dense', which");
  EXPECT_THROWS(apply(write_adapters(folder, "b", "null", "encoder.layer.1.output.dense")),
                kModelWrongKind, "must be [1, 12]; it is");
  EXPECT_THROWS(apply(write_adapters(folder, "c", "\"CAUSAL_LM\"", kKey)), kModelWrongKind,
                "of the task 'CAUSAL_LM'");
  const std::string tokens =
      write_adapters(folder, "d", "\"TOKEN_CLS\"", fmt::format("bert.{}", kKey), head_of(2));
  EXPECT_THROWS(EncoderPeft(base, std::vector{tokens}, BertHead::kText), kModelWrongKind,
                "this is one for SEQ_CLS");
  std::vector<std::string> both;
  for (const char* const name : {"e", "f"}) {
    both.push_back(write_adapters(folder, name, "\"SEQ_CLS\"", kKey, head_of(2)));
  }
  EXPECT_THROWS(EncoderPeft(base, both, BertHead::kText), kModelWrongKind, "hold a head");
}

}  // namespace
}  // namespace fovea
