// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "fovea/model/language_model.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
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

LanguageModelConfig of_gemma() {
  LanguageModelConfig c = of_llama();
  c.norm_position = NormPosition::kSandwich;
  c.activation = LayerActivation::kGegluTanh;
  c.embedding_scale = std::sqrt(32.0);
  return c;
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
          changed("Qwen3ForCausalLM", of_llama(),
                  [](Config& c) {
                    c.qk_norm = true;
                    c.window = "0,3";
                  }),
          changed("LlamaForCausalLM", of_llama(),
                  [](Config& c) { c.activation = LayerActivation::kGegluTanh; }),
          changed("GemmaForCausalLM", of_gemma(),
                  [](Config& c) { c.norm_position = NormPosition::kPre; }),
          {"Gemma2ForCausalLM", of_gemma()},
          changed("Gemma2ForCausalLM", of_gemma(),
                  [](Config& c) {
                    c.window = "3,0";
                    c.softcap = 50;
                    c.logit_softcap = 30;
                    c.head_dim = 6;
                    c.score_scale = 1 / std::sqrt(7.0);
                  }),
          changed("Gemma3ForCausalLM", of_gemma(), [](Config& c) {
            c.qk_norm = true;
            c.window = "3,0";
            c.rope_base = 1e6;
            c.rope_local_base = 500;
            c.tie = false;
          })};
}

std::vector<NamedTensor> tensors_of(const LanguageModel& model) {
  std::vector<NamedTensor> tensors;
  for (const Parameter* one : model.parameters()) tensors.push_back({one->name, one->value});
  return tensors;
}

std::vector<TensorPlace> places_of(const LanguageModel& model) {
  return tensor_places(architecture_of(model.config()), ModelForm::kHuggingFace, model.config());
}

Json written_config(const LanguageModelConfig& config) {
  const LanguageModelConfig resolved = resolve(config);
  return hugging_face_config(architecture_of(resolved), resolved);
}

const Tensor& tensor_of(const std::vector<NamedTensor>& tensors, std::string_view name) {
  for (const NamedTensor& one : tensors) {
    if (one.name == name) return one.tensor;
  }
  throw std::runtime_error("no tensor " + std::string(name));
}

TEST(HuggingFace, ModelsAreTheArchitecturesThatComputeThem) {
  for (const auto& [architecture, config] : cases()) {
    EXPECT_EQ(architecture_of(resolve(config)).class_name, architecture);
  }
}

// Each value of ours stands in one place of theirs, so nothing is lost.
TEST(HuggingFace, EveryValueHasOnePlace) {
  for (const auto& [architecture, config] : cases()) {
    const LanguageModel model(config, 1);
    const std::vector<NamedTensor> ours = tensors_of(model);
    std::map<std::string, std::set<index>> rows;  // of ours that have a place
    std::set<std::string> names;
    for (const TensorPlace& place : places_of(model)) {
      EXPECT_TRUE(names.insert(place.theirs).second) << place.theirs;
      if (place.ours.empty()) continue;
      const index count = place.shape[place.order == RowOrder::kTransposed ? 1 : 0];
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
  const auto theirs = tensors_at(places_of(model), model.config(), ours);
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
  const auto theirs = tensors_at(places_of(model), model.config(), ours);
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
  const Json written = written_config(config);
  EXPECT_EQ(written.at("sliding_window").whole(), 6);
  config.qk_norm = true;
  config.window = "0,5";
  const Json of_qwen3 = written_config(config);
  EXPECT_EQ(of_qwen3.at("layer_types").array().at(0).text(), "full_attention");
  EXPECT_EQ(of_qwen3.at("layer_types").array().at(1).text(), "sliding_attention");
}

// A config.json that was written is read as the same model.
TEST(HuggingFace, AConfigurationIsReadAsItWasWritten) {
  for (const auto& [architecture, config] : cases()) {
    LanguageModelConfig written = resolve(config);
    const Json json = written_config(config);
    const HuggingFaceModel read = read_hugging_face_config(ForeignObject(json, "config.json"));
    EXPECT_EQ(read.architecture.class_name, architecture);
    // Transformers' GPT-2 always has biases, and windows are one number a layer.
    if (read.architecture.name == "gpt2") written.bias = true;
    EXPECT_EQ(layer_windows(read.config), layer_windows(written));
    written.window = read.config.window;
    written.position_max = read.config.position_max;
    EXPECT_EQ(read.config, written) << architecture;
  }
}

// A key that could change what is computed, or a value that is not known, is named.
TEST(HuggingFace, WhatIsNotKnownOfAConfigurationIsNamed) {
  const auto refused = [](std::string_view key, Json value) {
    Json::Object config = written_config(of_llama()).object();
    std::erase_if(config, [&](const auto& one) { return one.first == key; });
    config.emplace_back(key, std::move(value));
    const Json json(std::move(config));
    const auto error =
        error_of([&] { read_hugging_face_config(ForeignObject(json, "config.json")); });
    return error ? std::string(error->what()) : "";
  };
  EXPECT_EQ(refused("use_cache", true), "");
  EXPECT_EQ(refused("logits_soft_cap", Json()), "");
  EXPECT_THAT(refused("final_logit_softcapping", 30), HasSubstr("'final_logit_softcapping' is 30"));
  EXPECT_THAT(refused("rope_scaling", Json::Object{{"rope_type", "longrope"}, {"factor", 4.0}}),
              HasSubstr("longrope"));
  EXPECT_THAT(refused("rope_scaling", Json::Object{{"type", "llama3"}, {"factor", 4.0}}),
              HasSubstr("'low_freq_factor' is missing"));
  EXPECT_THAT(refused("rope_scaling", Json::Object{{"type", "linear"}, {"factor", -4.0}}),
              HasSubstr("'factor' is -4"));
  EXPECT_THAT(refused("hidden_act", "quick_gelu"), HasSubstr("quick_gelu"));
  EXPECT_THAT(refused("hidden_act", "tanh"), HasSubstr("tanh"));
  EXPECT_THAT(refused("mlp_bias", true), HasSubstr("mlp_bias"));
  EXPECT_THAT(refused("is_causal", false), HasSubstr("is_causal"));
  EXPECT_THAT(refused("model_type", "mamba"), AllOf(HasSubstr("mamba"), HasSubstr("llama")));
  EXPECT_THAT(refused("hidden_size", -4), HasSubstr("'hidden_size' is -4; expected"));
  EXPECT_THAT(refused("hidden_size", "64"), HasSubstr("'hidden_size' is \"64\""));
  EXPECT_THAT(refused("hidden_size", Json()), HasSubstr("'hidden_size' is missing; expected"));
  EXPECT_THAT(refused("quantization_config", Json::Object{{"bits", 4}}),
              HasSubstr("quantization_config"));
}

// As transformers has it: the first layers see all keys.
TEST(HuggingFace, WindowsOfQwenBeginAtALayer) {
  LanguageModelConfig config = of_llama();
  config.qk_norm = true;
  Json::Object written = written_config(config).object();
  std::erase_if(written, [](const auto& one) {
    return one.first == "layer_types" || one.first == "use_sliding_window" ||
           one.first == "sliding_window";
  });
  written.emplace_back("use_sliding_window", true);
  written.emplace_back("sliding_window", 6);
  const auto windows = [&](Json::Object json) {
    const Json whole(std::move(json));
    return layer_windows(read_hugging_face_config(ForeignObject(whole, "config.json")).config);
  };
  EXPECT_THAT(windows(written),
              testing::ElementsAre(0, 0));  // from layer 28 on, if nothing is said
  written.emplace_back("max_window_layers", 1);
  EXPECT_THAT(windows(written), testing::ElementsAre(0, 5));
}

// A file as a source of tensors.
class InMemory : public TensorSource {
 public:
  explicit InMemory(std::vector<NamedTensor> tensors) : tensors_(std::move(tensors)) {
    for (const NamedTensor& one : tensors_) names_.push_back(one.name);
  }
  const std::vector<std::string>& names() const override { return names_; }
  TensorInfo info(std::size_t n) const override {
    return {names_[n], DType::kFloat32, tensors_[n].tensor.shape()};
  }
  Tensor read(std::size_t n) const override { return tensors_[n].tensor; }

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<std::string> names_;
};

// In both forms: rows of rotary pairs and matrices of GPT-2 lie in another order there.
TEST(Architecture, ParametersAreReadAsTheyWereWritten) {
  for (const ModelForm form : {ModelForm::kHuggingFace, ModelForm::kGguf}) {
    for (const auto& [name, config] : cases()) {
      const LanguageModel model(config, 1);
      const Architecture& row = architecture_of(model.config());
      const auto written = tensor_places(row, form, model.config());
      const InMemory file(tensors_at(written, model.config(), tensors_of(model)));
      LanguageModelConfig read = model.config();
      if (row.name == "gpt2") read.bias = true;
      LanguageModel copy(read, 2);
      set_weights(copy.parameters(), tensor_places(row, form, read), read, file);
      for (const NamedTensor& one : tensors_of(copy)) {
        const bool is_zero = one.name.ends_with(".bias") && !config.bias;
        const std::vector<float> expected =
            is_zero ? std::vector<float>(static_cast<std::size_t>(one.tensor.size()))
                    : to_vector(tensor_of(tensors_of(model), one.name).vec<float>());
        EXPECT_EQ(to_vector(one.tensor.vec<float>()), expected) << name << " " << one.name;
      }
    }
  }
}

TEST(Architecture, TensorsThatAreMissingOrHaveNoPlaceAreNamed) {
  const LanguageModel model(of_llama(), 1);
  const Architecture& row = architecture_of(model.config());
  const auto places = tensor_places(row, ModelForm::kGguf, model.config());
  const auto written = tensors_at(places, model.config(), tensors_of(model));
  LanguageModel copy(of_llama(), 2);
  const auto read = [&](std::vector<NamedTensor> tensors) {
    set_weights(copy.parameters(), places, model.config(), InMemory(std::move(tensors)));
  };
  auto fewer = written;
  fewer.pop_back();
  EXPECT_THROWS(read(fewer), kModelDamaged, "tensor output_norm.weight is missing");
  auto more = written;
  more.push_back({"blk.0.ffn_gate_inp.weight", Tensor({2})});
  EXPECT_THROWS(read(more), kModelWrongKind, "'blk.0.ffn_gate_inp.weight' has no place");
  auto other = written;
  other.front().tensor = Tensor({11, 31});
  EXPECT_THROWS(read(other), kModelDamaged, "token_embd.weight is [11, 31]");
}

// The message names what is in the way, and nothing else.
TEST(HuggingFace, WhatNoArchitectureHasIsNamed) {
  LanguageModelConfig config = of_llama();
  config.softcap = 30;
  config.sink = true;
  const auto refused = error_of([&] { architecture_of(resolve(config)); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), ErrorCode::kModelWrongKind);
  EXPECT_THAT(refused->what(), testing::EndsWith("LlamaForCausalLM, has --softcap 0, --no-sink"));
  config = small();
  config.position = enum_from_name<PositionKind>("alibi");
  EXPECT_THROWS(architecture_of(resolve(config)), kModelWrongKind, "--position learned");
  config = of_llama();
  config.window = "3,5";
  EXPECT_THROWS(architecture_of(resolve(config)), kModelWrongKind, "--window");
  config = small();
  config.bias = true;
  config.tie = false;
  EXPECT_THROWS(architecture_of(resolve(config)), kModelWrongKind, "--tie or --no-bias");
}

}  // namespace
}  // namespace fovea
