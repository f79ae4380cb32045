// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "fovea/model/language_model.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::AllOf;
using testing::Each;
using testing::SizeIs;

LanguageModelConfig small() {
  LanguageModelConfig c;
  c.layers = 2;
  c.heads = 4;
  c.width = 32;
  c.block = 16;
  c.vocabulary = 11;
  return c;
}

LanguageModelConfig of_llama() {
  LanguageModelConfig c = small();
  c.position = enum_from_name<PositionKind>("rotary");
  c.norm = NormKind::kRms;
  c.activation = LayerActivation::kSwiglu;
  return c;
}

struct NamedConfig {
  const char* architecture;
  LanguageModelConfig config;
};

template <class Change>
NamedConfig changed(const char* architecture, LanguageModelConfig config, Change&& change) {
  change(config);
  return {architecture, std::move(config)};
}

std::vector<NamedConfig> cases() {
  using Config = LanguageModelConfig;
  return {{"GPT2LMHeadModel", small()},
          changed("GPT2LMHeadModel", small(), [](Config& c) { c.bias = true; }),
          changed("GPT2LMHeadModel", small(), [](Config& c) { c.tie = false; }),
          {"LlamaForCausalLM", of_llama()},
          changed("LlamaForCausalLM", of_llama(), [](Config& c) { c.bias = true; }),
          changed("LlamaForCausalLM", of_llama(),
                  [](Config& c) {
                    c.kv_heads = 2;
                    c.head_dim = 6;
                    c.tie = false;
                  }),
          changed("MistralForCausalLM", of_llama(), [](Config& c) { c.window = "5"; }),
          changed("Qwen3ForCausalLM", of_llama(), [](Config& c) { c.qk_norm = true; }),
          changed("Qwen3ForCausalLM", of_llama(), [](Config& c) {
            c.qk_norm = true;
            c.window = "0,3";
          })};
}

std::vector<NamedTensor> tensors_of(const LanguageModel& model) {
  std::vector<NamedTensor> tensors;
  for (const Parameter* one : model.parameters()) tensors.push_back({one->name, one->value});
  return tensors;
}

const Tensor& tensor_of(const std::vector<NamedTensor>& tensors, std::string_view name) {
  for (const NamedTensor& one : tensors) {
    if (one.name == name) return one.tensor;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

TEST(HuggingFace, ModelsAreTheArchitecturesThatComputeThem) {
  for (const auto& [architecture, config] : cases()) {
    const HuggingFaceForm form = hugging_face_form(resolve(config));
    EXPECT_EQ(Json(form.config).at("architectures").array().at(0).text(), architecture);
  }
}

// Each value of ours stands in one place of theirs, so nothing is lost.
TEST(HuggingFace, EveryValueHasOnePlace) {
  for (const auto& [architecture, config] : cases()) {
    const LanguageModel model(config, 1);
    const std::vector<NamedTensor> ours = tensors_of(model);
    const HuggingFaceForm form = hugging_face_form(model.config());
    std::map<std::string, std::set<index>> rows;  // of ours that have a place
    std::set<std::string> names;
    for (const TensorPlace& place : form.tensors) {
      EXPECT_TRUE(names.insert(place.theirs).second) << place.theirs;
      if (place.ours.empty()) continue;
      const index count = place.transposed ? place.shape[1] : place.shape[0];
      for (index n = 0; n < count; ++n) {
        EXPECT_TRUE(rows[place.ours].insert(place.first + n).second) << place.ours;
      }
    }
    EXPECT_EQ(rows.size(), ours.size()) << architecture;
    for (const NamedTensor& one : ours) {
      EXPECT_EQ(std::ssize(rows[one.name]), one.tensor.shape()[0]) << one.name;
    }
  }
}

TEST(HuggingFace, RowsOfQueriesKeysAndValuesStandApart) {
  LanguageModelConfig config = of_llama();
  config.kv_heads = 2;
  const LanguageModel model(config, 1);
  const std::vector<NamedTensor> ours = tensors_of(model);
  const auto theirs = hugging_face_tensors(hugging_face_form(model.config()), ours);
  const auto qkv = tensor_of(ours, "blocks.1.attention.qkv.weight").rows<float>();
  const auto row = [&](const char* name, index n) {
    return tensor_of(theirs, std::string("model.layers.1.self_attn.") + name).rows<float>()[n];
  };
  EXPECT_EQ(row("q_proj.weight", 31)[3], qkv[31][3]);
  EXPECT_EQ(row("k_proj.weight", 2)[5], qkv[34][5]);
  EXPECT_EQ(row("v_proj.weight", 15)[7], qkv[63][7]);
}

TEST(HuggingFace, MatricesOfGpt2AreTransposedAndBiasesThatAreMissingAreZero) {
  const LanguageModel model(small(), 1);
  const std::vector<NamedTensor> ours = tensors_of(model);
  const auto theirs = hugging_face_tensors(hugging_face_form(model.config()), ours);
  const Tensor& matrix = tensor_of(theirs, "transformer.h.0.mlp.c_fc.weight");
  EXPECT_EQ(matrix.shape(), Shape({32, 128}));
  EXPECT_EQ(matrix.rows<float>()[3][100],
            tensor_of(ours, "blocks.0.feed_forward.in.weight").rows<float>()[100][3]);
  const Tensor& bias = tensor_of(theirs, "transformer.h.0.attn.c_attn.bias");
  EXPECT_THAT(to_vector(bias.vec<float>()), AllOf(SizeIs(96), Each(0.0F)));
}

TEST(HuggingFace, AWindowCountsTheQuerysOwnKey) {
  LanguageModelConfig config = of_llama();
  config.window = "5";
  const Json written(hugging_face_form(resolve(config)).config);
  EXPECT_EQ(written.at("sliding_window").whole(), 6);
  config.qk_norm = true;
  config.window = "0,5";
  const Json of_qwen3(hugging_face_form(resolve(config)).config);
  EXPECT_EQ(of_qwen3.at("layer_types").array().at(0).text(), "full_attention");
  EXPECT_EQ(of_qwen3.at("layer_types").array().at(1).text(), "sliding_attention");
}

// The message names what is in the way, and nothing else.
TEST(HuggingFace, WhatNoArchitectureHasIsNamed) {
  LanguageModelConfig config = of_llama();
  config.softcap = 30;
  config.sink = true;
  const auto refused = error_of([&] { hugging_face_form(resolve(config)); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::kModelWrongKind);
  EXPECT_THAT(refused->what(), testing::EndsWith("LlamaForCausalLM, has --softcap 0, --no-sink"));
  config = small();
  config.position = enum_from_name<PositionKind>("alibi");
  EXPECT_THROWS(hugging_face_form(resolve(config)), kModelWrongKind, "--position learned");
  config = of_llama();
  config.window = "3,5";
  EXPECT_THROWS(hugging_face_form(resolve(config)), kModelWrongKind, "--window");
  config = small();
  config.bias = true;
  config.tie = false;
  EXPECT_THROWS(hugging_face_form(resolve(config)), kModelWrongKind, "--tie or --no-bias");
}

}  // namespace
}  // namespace fovea
