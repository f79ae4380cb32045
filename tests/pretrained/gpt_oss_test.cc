// SPDX-License-Identifier: Apache-2.0
// GPT-OSS, in folders as transformers writes them: sinks, windows, and a mixture of experts.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <functional>

#include "fovea/base/file.h"
#include "fovea/grad/tape.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/mxfp4.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/tensor/safetensors.h"
#include "tests/pretrained/golden_numbers.h"
#include "tests/pretrained/gpt_oss_golden.h"
#include "tests/support/folder.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// factor_of() of make_gpt_oss_golden.py.
float factor_of(std::string_view name) {
  if (name.find("gate_up_proj") != name.npos) return 16;
  return name.find("router") != name.npos || name.find("sinks") != name.npos ? 4 : 1;
}

std::vector<NamedTensor> tensors_of(const GoldenGptOss& golden) {
  GoldenNumbers numbers(golden.first);
  std::vector<NamedTensor> tensors;
  for (const GoldenGptOss::Stored& stored : golden.tensors) {
    const Shape shape(std::vector<index>(stored.shape.begin(), stored.shape.end()));
    std::vector<float> values = numbers.next(shape.size());
    const bool is_gain = stored.name.find("norm") != stored.name.npos;
    for (float& value : values) value = value * factor_of(stored.name) + (is_gain ? 1 : 0);
    tensors.push_back({std::string(stored.name), Tensor::of<float>(shape, values)});
  }
  return tensors;
}

// A vocabulary of as many letters as the model has ids.
std::string tokenizer_json() {
  std::string vocabulary;
  for (int n = 0; n < 14; ++n) {
    vocabulary += fmt::format("{}\"{}\": {}", n == 0 ? "" : ", ", static_cast<char>('a' + n), n);
  }
  return R"({"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
    "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
    "model": {"type": "BPE", "vocab": {)" +
         vocabulary + R"(}, "merges": []}})";
}

void write_folder(const fs::path& folder, const std::string& config,
                  const std::vector<NamedTensor>& tensors) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  write_file_atomically(folder / "config.json", config);
  write_file_atomically(folder / "tokenizer.json", tokenizer_json());
  write_safetensors(folder / "model.safetensors", tensors);
}

std::string changed(std::string_view config, const std::string& key, const std::string& value) {
  Json::Object object = parse_json(config, {"config.json"}).object();
  std::erase_if(object, [&](const auto& member) { return member.first == key; });
  if (!value.empty()) object.emplace_back(key, parse_json(value, {"a test"}));
  return Json(std::move(object)).line();
}

struct GptOssBatch {
  std::vector<std::int32_t> ids, targets, offsets = {0};

  GptOssBatch() {
    for (const auto& text : kGptOssTexts) {
      ids.insert(ids.end(), text.begin(), text.end());
      targets.insert(targets.end(), text.begin() + 1, text.end());
      targets.push_back(-1);
      offsets.push_back(static_cast<std::int32_t>(ids.size()));
    }
  }
  static Vec<const std::int32_t> view(const std::vector<std::int32_t>& of) {
    return {of.data(), std::ssize(of)};
  }
  TokenBatch batch() const {
    return {.ids = view(ids), .targets = view(targets), .offsets = view(offsets)};
  }
};

std::vector<float> logits_of(const LanguageModel& model, int threads = 1) {
  Tape tape(Context(threads), TapeMode::kInference);
  const GptOssBatch batch;
  return to_vector(model.logits(tape, batch.batch()).value<float>());
}

double error_of(const std::vector<float>& logits, const GoldenGptOss& golden) {
  double largest = 0, error = 0;
  for (std::size_t n = 0; n < logits.size(); ++n) {
    largest = std::max(largest, std::abs(golden.logits[n]));
    error = std::max(error, std::abs(logits[n] - golden.logits[n]));
  }
  return logits.size() == golden.logits.size() ? error / largest : 1;
}

class GptOss : public testing::Test {
 protected:
  PretrainedLanguageModel load(const GoldenGptOss& golden) const {
    return load(std::string(golden.config), tensors_of(golden));
  }
  PretrainedLanguageModel load(const std::string& config,
                               const std::vector<NamedTensor>& tensors) const {
    write_folder(folder_ / "model", config, tensors);
    return load_hugging_face(folder_ / "model");
  }
  PretrainedLanguageModel with(const std::string& key, const std::string& value) const {
    return load(changed(kGoldenGptOss[0].config, key, value), tensors_of(kGoldenGptOss[0]));
  }

  const TestFolder folder_;
};

// A batch that transformers pads; texts are longer than the windows.
TEST_F(GptOss, LogitsOfABatchAreThoseOfTransformers) {
  for (const GoldenGptOss& golden : kGoldenGptOss) {
    SCOPED_TRACE(golden.name);
    EXPECT_LT(error_of(logits_of(*load(golden).model), golden), 2e-5);
  }
}

TEST_F(GptOss, ADecoderWithItsCacheGivesTheSameLogits) {
  for (const GoldenGptOss& golden : kGoldenGptOss) {
    SCOPED_TRACE(golden.name);
    const PretrainedLanguageModel loaded = load(golden);
    std::vector<float> found;
    for (const auto& text : kGptOssTexts) {
      LanguageModelDecoder decoder(Context(1), *loaded.model);
      for (const std::int32_t id : text) {
        const Vec<const float> logits = decoder.append({&id, 1});
        found.insert(found.end(), logits.begin(), logits.end());
      }
    }
    EXPECT_LT(error_of(found, golden), 2e-5);
  }
}

TEST_F(GptOss, SameBitsForAnyNumberOfThreads) {
  const PretrainedLanguageModel loaded = load(kGoldenGptOss[0]);
  const std::vector<float> one = logits_of(*loaded.model, 1);
  for (const int threads : {2, 5}) EXPECT_EQ(logits_of(*loaded.model, threads), one);
}

// The same weights in double, for some of these gradients are small differences.
LanguageModel in_double(const PretrainedLanguageModel& loaded) {
  LanguageModel model(loaded.config, ParameterSetOptions{.dtype = DType::kFloat64});
  for (std::size_t n = 0; n < model.parameters().size(); ++n) {
    model.parameters()[n]->value.copy_from(
        loaded.model->parameters()[n]->value.to(DType::kFloat64));
    ++model.parameters()[n]->version;
  }
  return model;
}

TEST_F(GptOss, GradientsOfAllParametersAreThoseOfTorch) {
  for (const GoldenGptOss& golden : kGoldenGptOss) {
    SCOPED_TRACE(golden.name);
    const PretrainedLanguageModel loaded = load(golden);
    const GptOssBatch batch;
    const auto targets = std::ranges::count_if(batch.targets, [](int id) { return id >= 0; });
    for (const InnerResults kept : {InnerResults::kKept, InnerResults::kRecomputed}) {
      const LanguageModel model = in_double(loaded);
      Tape tape{Context(2)};
      tape.set_inner_results(kept);
      const Variable loss =
          model.loss(tape, batch.batch(), {.scale = 1.0 / static_cast<double>(targets)});
      EXPECT_NEAR(loss.value<double>()[0][0], golden.loss, 1e-5 * golden.loss);
      tape.backward(loss);
      ASSERT_EQ(model.parameters().size(), golden.gradients.size());
      for (Parameter* const one : model.parameters()) {
        const auto found =
            std::ranges::find(golden.gradients, one->name, &GoldenGptOss::Gradient::parameter);
        ASSERT_NE(found, golden.gradients.end()) << one->name;
        one->gather_rows();
        double squares = 0, waves = 0, i = 0;
        for (const double value : to_vector(one->finished_gradient().vec<double>())) {
          squares += value * value;
          waves += value * std::cos(i++);
        }
        EXPECT_NEAR(squares, found->squares, 1e-4 * found->squares) << one->name;
        EXPECT_NEAR(waves, found->waves, 1e-4 * std::sqrt(found->squares)) << one->name;
      }
    }
  }
}

// What is easily forgotten: without it the logits are others.
TEST_F(GptOss, EveryRuleChangesTheLogits) {
  using Config = LanguageModelConfig;
  struct Trap {
    const char* name;
    void (*forget)(Config&);
  };
  constexpr Trap kTraps[] = {
      {"windows", [](Config& c) { c.window.clear(); }},
      {"which layers", [](Config& c) { c.window = "0,3,0"; }},
      {"a window off by one", [](Config& c) { c.window = "4,0,4"; }},
      {"how many experts", [](Config& c) { c.experts_per_token = 3; }},
      {"stretched angles", [](Config& c) { c.rotary_divisors.clear(); }},
      {"their amplitude", [](Config& c) { c.rotary_amplitude = 1; }},
  };
  const GoldenGptOss& golden = kGoldenGptOss[0];
  const PretrainedLanguageModel loaded = load(golden);
  const auto error_with = [&](const Config& config, std::string_view zeroed) {
    LanguageModel other(config, 1);
    for (std::size_t n = 0; n < other.parameters().size(); ++n) {
      Parameter& to = *other.parameters()[n];
      to.value.copy_from(loaded.model->parameters()[n]->value);
      if (!zeroed.empty() && to.name.find(zeroed) != to.name.npos) to.value.fill_zero();
      ++to.version;
    }
    return error_of(logits_of(other), golden);
  };
  EXPECT_LT(error_with(loaded.config, ""), 2e-5);
  for (const Trap& trap : kTraps) {
    Config config = loaded.config;
    trap.forget(config);
    EXPECT_GT(error_with(config, ""), 1e-3) << trap.name;
  }
  for (const char* const name : {"attention.sink", "attention.qkv.bias", "attention.out.bias",
                                 "router.bias", "feed_forward.in.bias", "feed_forward.out.bias"}) {
    EXPECT_GT(error_with(loaded.config, name), 1e-3) << name;
  }
}

TEST_F(GptOss, WhatAFileDoesNotSayIsAsTransformersHasIt) {
  std::string config = R"({"model_type": "gpt_oss", "vocab_size": 14, "hidden_size": 12,
    "intermediate_size": 10, "num_hidden_layers": 3, "num_attention_heads": 16,
    "num_local_experts": 5})";
  const auto read = [&] {
    const Json json = parse_json(config, {"config.json"});
    return read_hugging_face_config(ForeignObject(json, "config.json")).config;
  };
  const LanguageModelConfig usual = read();
  EXPECT_EQ(usual.window, "127,0,127");
  EXPECT_EQ(usual.rope_base, 150000);
  EXPECT_EQ(usual.experts_per_token, 4);
  EXPECT_EQ(usual.kv_heads, 8);
  EXPECT_EQ(usual.head_dim, 64);
  EXPECT_EQ(usual.block, 131072);
  EXPECT_EQ(usual.norm_epsilon, 1e-5);
  EXPECT_NEAR(usual.rotary_amplitude, 0.1 * std::log(32.0) + 1, 1e-12);
  EXPECT_FALSE(usual.tie);
  // As the models that were published say it.
  config = changed(config, "rope_scaling",
                   R"({"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                       "original_max_position_embeddings": 4096, "rope_type": "yarn",
                       "truncate": false})");
  config = changed(config, "rope_theta", "150000");
  config = changed(config, "initial_context_length", "4096");
  config = changed(config, "experts_per_token", "4");
  config = changed(config, "router_aux_loss_coef", "0.9");
  config = changed(config, "output_router_logits", "false");
  config = changed(config, "swiglu_limit", "7.0");
  config = changed(config, "quantization_config",
                   R"({"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})");
  EXPECT_EQ(read(), usual);
}

TEST_F(GptOss, WhatIsNotKnownIsRefusedByItsName) {
  for (const auto& [key, value] : {std::pair{"swiglu_limit", "6.0"},
                                   {"swiglu_alpha", "1.0"},
                                   {"attention_bias", "false"},
                                   {"hidden_act", "\"gelu\""},
                                   {"experts_per_token", "3"},
                                   {"quantization_config", "{\"quant_method\": \"gptq\"}"},
                                   {"shared_experts", "2"}}) {
    EXPECT_THROWS(with(key, value), kModelWrongKind, key);
  }
  EXPECT_THROWS(with("num_local_experts", "0"), kModelDamaged, "num_local_experts");
  EXPECT_THROWS(with("num_experts_per_tok", "6"), kModelDamaged, "num_experts_per_tok");
  EXPECT_THROWS(with("num_local_experts", "6"), kModelDamaged, "");
  for (const char* const name :
       {"model.layers.1.self_attn.sinks", "model.layers.0.mlp.experts.down_proj_bias"}) {
    std::vector<NamedTensor> tensors = tensors_of(kGoldenGptOss[0]);
    std::erase_if(tensors, [&](const NamedTensor& one) { return one.name == name; });
    EXPECT_THROWS(load(std::string(kGoldenGptOss[0].config), tensors), kModelDamaged, name);
  }
}

// ------------------------------------------------------------------------------------- MXFP4

Tensor bytes(const Shape& shape, const std::vector<std::uint8_t>& values) {
  Tensor tensor = Tensor::empty(shape, DType::kUInt8);
  std::ranges::copy(values, tensor.data<std::uint8_t>());
  return tensor;
}

TEST(Mxfp4, EveryNumberAndEveryScale) {
  constexpr float kNumbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.F, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (const int power : {1, 120, 127, 130, 250}) {
    std::string blocks;
    for (int n = 0; n < 16; ++n) blocks += static_cast<char>((15 - n) << 4 | n);
    Tensor wide = Tensor::empty({1, 32, 1});
    widen_mxfp4(blocks, std::string(1, static_cast<char>(power)), wide);
    for (int n = 0; n < 16; ++n) {
      EXPECT_EQ(wide.data<float>()[2 * n], std::ldexp(kNumbers[n], power - 127));
      EXPECT_EQ(wide.data<float>()[2 * n + 1], std::ldexp(kNumbers[15 - n], power - 127));
    }
  }
  Tensor wide = Tensor::empty({1, 32, 1});
  EXPECT_THROWS(widen_mxfp4("abc", "a", wide), kModelDamaged, "3 bytes of blocks");
  EXPECT_THROWS(mxfp4_shape({2, 3, 1, 16}, {2, 3, 2}, "x_blocks"), kModelDamaged, "x_blocks");
  EXPECT_THROWS(mxfp4_shape({2, 3, 16}, {2, 3}, "x_blocks"), kModelDamaged, "x_blocks");
  EXPECT_EQ(mxfp4_shape({2, 3, 4, 16}, {2, 3, 4}, "x"), (Shape{2, 128, 3}));
}

// Blocks in the place of values, and the same values in float32.
TEST_F(GptOss, ExpertsInBlocksAreThoseThatTheyStandFor) {
  constexpr std::string_view kConfig =
      R"({"model_type": "gpt_oss", "vocab_size": 14, "hidden_size": 64, "intermediate_size": 32,
          "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4,
          "num_local_experts": 3, "num_experts_per_tok": 2, "max_position_embeddings": 32,
          "sliding_window": 4, "rope_parameters": {"rope_type": "default", "rope_theta": 100.0}})";
  const std::string layer = "model.layers.0.";
  GoldenNumbers numbers;
  std::vector<NamedTensor> shared, wide, blocks;
  const auto add = [&](const std::string& name, const Shape& shape) {
    shared.push_back({name, Tensor::of<float>(shape, numbers.next(shape.size()))});
  };
  add("model.embed_tokens.weight", {14, 64});
  add("lm_head.weight", {14, 64});
  add("model.norm.weight", {64});
  add(layer + "input_layernorm.weight", {64});
  add(layer + "post_attention_layernorm.weight", {64});
  add(layer + "self_attn.sinks", {2});
  for (const auto& [name, rows] : {std::pair{"q_proj", 8}, {"k_proj", 4}, {"v_proj", 4}}) {
    add(fmt::format("{}self_attn.{}.weight", layer, name), {rows, 64});
    add(fmt::format("{}self_attn.{}.bias", layer, name), {rows});
  }
  add(layer + "self_attn.o_proj.weight", {64, 8});
  add(layer + "self_attn.o_proj.bias", {64});
  add(layer + "mlp.router.weight", {3, 64});
  add(layer + "mlp.router.bias", {3});
  add(layer + "mlp.experts.gate_up_proj_bias", {3, 64});
  add(layer + "mlp.experts.down_proj_bias", {3, 64});
  for (const auto& [name, in, out] :
       {std::tuple{"gate_up_proj", index{64}, index{64}}, {"down_proj", index{32}, index{64}}}) {
    std::vector<std::uint8_t> codes, scales;
    for (index n = 0; n < 3 * out * in / 2; ++n) {
      codes.push_back(static_cast<std::uint8_t>(n * 37 + n / 7));
    }
    for (index n = 0; n < 3 * out * in / 32; ++n) {
      scales.push_back(static_cast<std::uint8_t>(122 + n % 4));
    }
    Tensor values = Tensor::empty({3, in, out});
    widen_mxfp4({reinterpret_cast<const char*>(codes.data()), codes.size()},
                {reinterpret_cast<const char*>(scales.data()), scales.size()}, values);
    const std::string full = fmt::format("{}mlp.experts.{}", layer, name);
    wide.push_back({full, std::move(values)});
    blocks.push_back({full + "_blocks", bytes({3, out, in / 32, 16}, codes)});
    blocks.push_back({full + "_scales", bytes({3, out, in / 32}, scales)});
  }
  const auto logits_with = [&](std::vector<NamedTensor> tensors) {
    tensors.insert(tensors.end(), shared.begin(), shared.end());
    return logits_of(*load(std::string(kConfig), tensors).model);
  };
  EXPECT_EQ(logits_with(blocks), logits_with(wide));
  blocks.pop_back();  // the scales: then these are no numbers of the model
  EXPECT_THROWS(logits_with(blocks), kModelDamaged, "more values than");
}

}  // namespace
}  // namespace fovea
