// SPDX-License-Identifier: Apache-2.0
// Models of the architectures gemma, gemma2 and gemma3: in GGUF files, and in folders of Hugging
// Face, which store gains 1 + w as w.
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "fovea/base/file.h"
#include "fovea/grad/tape.h"
#include "fovea/pretrained/gguf_model.h"
#include "fovea/pretrained/hugging_face.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/tensor/gguf_writer.h"
#include "fovea/tensor/safetensors.h"
#include "tests/pretrained/gemma_golden.h"
#include "tests/pretrained/golden_numbers.h"
#include "tests/support/folder.h"
#include "tests/support/gguf_file.h"
#include "tests/support/throws.h"
#include "tests/support/vectors.h"

namespace fovea {
namespace {

const GoldenGemma& kGemmaGolden = kGoldenGemmas[0];
const GoldenGemma& kGemma2Golden = kGoldenGemmas[1];
const GoldenGemma& kGemma3Golden = kGoldenGemmas[2];

struct GemmaTensor {
  std::string hugging_face, gguf;
  Shape shape;
  std::vector<float> values;  // those of Hugging Face
};

std::vector<GemmaTensor> tensors_of(const GoldenGemma& g) {
  GoldenNumbers numbers;
  std::vector<GemmaTensor> tensors;
  const auto add = [&](std::string hugging_face, std::string gguf, Shape shape) {
    tensors.push_back(
        {hugging_face + ".weight", gguf + ".weight", shape, numbers.next(shape.size())});
  };
  constexpr index C = kGemmaWidth, F = kGemmaFf;
  const index q = g.heads * g.head_dim, kv = g.kv_heads * g.head_dim;
  add("model.embed_tokens", "token_embd", {kGemmaVocabulary, C});
  for (std::size_t n = 0; n < g.layers.size(); ++n) {
    const std::string theirs = "model.layers." + std::to_string(n) + ".";
    const std::string layer = "blk." + std::to_string(n) + ".";
    add(theirs + "input_layernorm", layer + "attn_norm", {C});
    add(theirs + "self_attn.q_proj", layer + "attn_q", {q, C});
    add(theirs + "self_attn.k_proj", layer + "attn_k", {kv, C});
    add(theirs + "self_attn.v_proj", layer + "attn_v", {kv, C});
    add(theirs + "self_attn.o_proj", layer + "attn_output", {C, q});
    const bool sandwich = g.name != "gemma";
    add(theirs + "post_attention_layernorm",
        layer + (sandwich ? "post_attention_norm" : "ffn_norm"), {C});
    if (sandwich) add(theirs + "pre_feedforward_layernorm", layer + "ffn_norm", {C});
    add(theirs + "mlp.gate_proj", layer + "ffn_gate", {F, C});
    add(theirs + "mlp.up_proj", layer + "ffn_up", {F, C});
    add(theirs + "mlp.down_proj", layer + "ffn_down", {C, F});
    if (sandwich) add(theirs + "post_feedforward_layernorm", layer + "post_ffw_norm", {C});
    if (g.name != "gemma3") continue;
    add(theirs + "self_attn.q_norm", layer + "attn_q_norm", {g.head_dim});
    add(theirs + "self_attn.k_norm", layer + "attn_k_norm", {g.head_dim});
  }
  add("model.norm", "output_norm", {C});
  return tensors;
}

// As llama.cpp's converter writes it.
std::string gguf_of(const GoldenGemma& g) {
  const std::string prefix = std::string(g.name) + ".";
  const auto number = [&](const char* key, std::size_t value) {
    return gguf_pair(prefix + key, static_cast<std::uint32_t>(value));
  };
  const auto whole = [&](const char* key, int value) {
    return number(key, static_cast<std::size_t>(value));
  };
  const auto real = [&](const char* key, double value) {
    return gguf_pair(prefix + key, static_cast<float>(value));
  };
  std::vector<std::string> names;
  for (char c = 'a'; c < 'a' + kGemmaVocabulary; ++c) names.emplace_back(1, c);
  const std::vector<std::int32_t> kinds(names.size(), 1);
  std::vector<std::string> pairs = {gguf_pair("general.architecture", g.name),
                                    number("block_count", g.layers.size()),
                                    whole("context_length", 16),
                                    whole("embedding_length", kGemmaWidth),
                                    whole("feed_forward_length", kGemmaFf),
                                    whole("attention.head_count", g.heads),
                                    whole("attention.head_count_kv", g.kv_heads),
                                    whole("attention.key_length", g.head_dim),
                                    whole("attention.value_length", g.head_dim),
                                    real("rope.freq_base", g.base),
                                    real("attention.layer_norm_rms_epsilon", g.epsilon),
                                    gguf_pair("tokenizer.ggml.model", "gpt2"),
                                    gguf_pair("tokenizer.ggml.pre", "smollm"),
                                    gguf_array("tokenizer.ggml.tokens", names),
                                    gguf_array("tokenizer.ggml.token_type", kinds),
                                    gguf_array<std::string>("tokenizer.ggml.merges", {}),
                                    gguf_pair("tokenizer.ggml.eos_token_id", std::uint32_t{0})};
  if (g.seen > 0) pairs.push_back(whole("attention.sliding_window", g.seen));
  if (g.name == "gemma2") {
    pairs.push_back(real("attn_logit_softcapping", g.cap));
    pairs.push_back(real("final_logit_softcapping", g.logit_cap));
  } else if (g.name == "gemma3") {
    pairs.push_back(real("rope.freq_base_swa", g.local_base));
    pairs.push_back(gguf_pair(prefix + "rope.scaling.type", "linear"));
    pairs.push_back(real("rope.scaling.factor", g.factor));
    pairs.push_back(whole("attention.sliding_window_pattern", 3));
  }
  std::vector<GgufTensorText> tensors;
  for (const GemmaTensor& one : tensors_of(g)) {
    std::vector<std::uint64_t> sizes;
    for (index axis = one.shape.axes(); axis > 0; --axis) {
      sizes.push_back(static_cast<std::uint64_t>(one.shape[axis - 1]));
    }
    std::vector<float> values = one.values;
    if (one.shape.axes() == 1) {
      for (float& value : values) value += 1;
    }
    tensors.push_back(gguf_tensor(one.gguf, sizes, values));
  }
  return gguf_file(pairs, tensors);
}

// As transformers 5 writes it.
Json::Object config_of(const GoldenGemma& g) {
  Json::Array types;
  for (const char kind : g.layers) {
    types.emplace_back(kind == 's' ? "sliding_attention" : "full_attention");
  }
  const auto cap = [](double value) { return value > 0 ? Json(value) : Json(); };
  Json::Object full = {{"rope_type", "default"}, {"rope_theta", g.base}};
  Json::Object rope = full;
  if (g.name == "gemma3") {
    full[0].second = "linear";
    full.emplace_back("factor", g.factor);
    rope = {{"full_attention", full},
            {"sliding_attention",
             Json::Object{{"rope_type", "default"}, {"rope_theta", g.local_base}}}};
  }
  Json::Object config = {{"model_type", g.name == "gemma3" ? "gemma3_text" : g.name},
                         {"vocab_size", kGemmaVocabulary},
                         {"hidden_size", kGemmaWidth},
                         {"intermediate_size", kGemmaFf},
                         {"num_hidden_layers", std::ssize(g.layers)},
                         {"num_attention_heads", g.heads},
                         {"num_key_value_heads", g.kv_heads},
                         {"head_dim", g.head_dim},
                         {"max_position_embeddings", 16},
                         {"rms_norm_eps", g.epsilon},
                         {"rope_parameters", rope},
                         {"use_bidirectional_attention", false},
                         {"eos_token_id", 1}};
  if (g.name == "gemma") {
    config.emplace_back("hidden_act", "gelu");  // which is that by tanh
    return config;
  }
  const Json::Object later = {{"query_pre_attn_scalar", g.scalar},
                              {"sliding_window", g.seen},
                              {"layer_types", types},
                              {"attn_logit_softcapping", cap(g.cap)},
                              {"final_logit_softcapping", cap(g.logit_cap)},
                              {"hidden_activation", "gelu_pytorch_tanh"},
                              {"_sliding_window_pattern", 6}};
  config.insert(config.end(), later.begin(), later.end());
  return config;
}

LanguageModelConfig read_config(Json::Object config) {
  const Json json(std::move(config));
  return read_hugging_face_config(ForeignObject(json, "config.json")).config;
}

// A model with these weights, which are read as those of a folder.
std::unique_ptr<LanguageModel> model_with(const GoldenGemma& g, const LanguageModelConfig& config) {
  class Source : public TensorSource {
   public:
    explicit Source(std::vector<GemmaTensor> tensors) : tensors_(std::move(tensors)) {
      for (const GemmaTensor& one : tensors_) names_.push_back(one.hugging_face);
    }
    const std::vector<std::string>& names() const override { return names_; }
    TensorInfo info(std::size_t n) const override {
      return {names_[n], DType::kFloat32, tensors_[n].shape};
    }
    Tensor read(std::size_t n) const override {
      return Tensor::of<float>(tensors_[n].shape, tensors_[n].values);
    }

   private:
    std::vector<GemmaTensor> tensors_;
    std::vector<std::string> names_;
  };
  auto model = std::make_unique<LanguageModel>(config, 1);
  set_weights(model->parameters(),
              tensor_places(architecture(g.name), ModelForm::kHuggingFace, config), config,
              Source(tensors_of(g)));
  return model;
}

struct GemmaBatch {
  std::vector<std::int32_t> ids{kGemmaIds.begin(), kGemmaIds.end()}, targets, offsets;

  GemmaBatch() {
    targets.assign(ids.begin() + 1, ids.end());
    targets.push_back(-1);
    offsets = {0, static_cast<std::int32_t>(ids.size())};
  }
  static Vec<const std::int32_t> view(const std::vector<std::int32_t>& of) {
    return {of.data(), std::ssize(of)};
  }
  TokenBatch batch() const {
    return {.ids = view(ids), .targets = view(targets), .offsets = view(offsets)};
  }
};

std::vector<float> logits_of(const LanguageModel& model) {
  Tape tape(Context(1), TapeMode::kInference);
  const GemmaBatch batch;
  return to_vector(model.logits(tape, batch.batch()).value<float>());
}

// The largest difference from the golden logits, relative to the largest of these.
double error_of_logits(const std::vector<float>& logits, const GoldenGemma& g) {
  double largest = 0, error = 0;
  for (std::size_t n = 0; n < logits.size(); ++n) {
    largest = std::max(largest, std::abs(g.logits[n]));
    error = std::max(error, std::abs(logits[n] - g.logits[n]));
  }
  return logits.size() == g.logits.size() ? error / largest : 1;
}

class Gemma : public testing::TestWithParam<const GoldenGemma*> {
 protected:
  static const GoldenGemma& golden() { return *GetParam(); }

  std::filesystem::path file(const std::string& bytes) {
    write_file_atomically(folder_ / "m.gguf", bytes);
    return folder_ / "m.gguf";
  }
  const TestFolder folder_;
};

// gemma2 of llama.cpp divides by the width of a head alone.
TEST_P(Gemma, LogitsOfAFileAreThoseOfTransformers) {
  PretrainedLanguageModel loaded = load_gguf(file(gguf_of(golden())));
  LanguageModelConfig config = loaded.config;
  EXPECT_EQ(config.score_scale, 0);
  config.score_scale = 1 / std::sqrt(golden().scalar);
  LanguageModel model(config, 1);
  for (std::size_t n = 0; n < model.parameters().size(); ++n) {
    model.parameters()[n]->value.copy_from(loaded.model->parameters()[n]->value);
  }
  EXPECT_LT(error_of_logits(logits_of(model), golden()), 2e-5);
}

TEST_P(Gemma, LogitsOfAFolderAreThoseOfTransformers) {
  const LanguageModelConfig config = read_config(config_of(golden()));
  EXPECT_LT(error_of_logits(logits_of(*model_with(golden(), config)), golden()), 2e-5);
}

TEST_P(Gemma, ADecoderWithItsCacheGivesTheSameLogits) {
  const auto model = model_with(golden(), read_config(config_of(golden())));
  const std::vector<float> whole = logits_of(*model);
  LanguageModelDecoder decoder(Context(1), *model);
  for (std::size_t n = 0; n < kGemmaIds.size(); ++n) {
    const std::int32_t id = kGemmaIds[n];
    const Vec<const float> logits = decoder.append({&id, 1});
    for (std::size_t v = 0; v < kGemmaVocabulary; ++v) {
      EXPECT_NEAR(logits[static_cast<index>(v)], whole[n * kGemmaVocabulary + v], 1e-5) << n;
    }
  }
}

TEST_P(Gemma, GradientsAreThoseOfTorch) {
  const GoldenGemma& g = golden();
  const auto model = model_with(g, read_config(config_of(g)));
  Tape tape{Context(1)};
  const GemmaBatch batch;
  const double scale = 1.0 / static_cast<double>(kGemmaIds.size() - 1);
  const Variable loss = model->loss(tape, batch.batch(), {.scale = scale});
  EXPECT_NEAR(loss.value<float>()[0][0], g.loss, 1e-5 * g.loss);
  tape.backward(loss);
  ASSERT_EQ(model->parameters().size(), g.gradients.size());
  for (Parameter* const parameter : model->parameters()) {
    const auto found =
        std::ranges::find(g.gradients, parameter->name, &GoldenGemma::Gradient::parameter);
    ASSERT_NE(found, g.gradients.end()) << parameter->name;
    double squares = 0, waves = 0, i = 0;
    for (const float value : to_vector(parameter->finished_gradient().vec<float>())) {
      squares += double{value} * value;
      waves += value * std::cos(i++);
    }
    EXPECT_NEAR(squares, found->squares, 2e-4 * found->squares) << parameter->name;
    EXPECT_NEAR(waves, found->waves, 1e-4 * std::sqrt(found->squares)) << parameter->name;
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Gemma,
                         testing::Values(&kGemmaGolden, &kGemma2Golden, &kGemma3Golden),
                         [](const auto& one) { return std::string(one.param->name); });

// What is easily forgotten: without it the logits are others.
TEST(GemmaTraps, EachChangesTheLogits) {
  struct Trap {
    const char* name;
    const GoldenGemma& golden;
    std::function<void(LanguageModelConfig&)> forget;
  };
  using Config = LanguageModelConfig;
  const Trap traps[] = {
      {"cap of scores", kGemma2Golden, [](Config& c) { c.softcap = 0; }},
      {"cap of logits", kGemma2Golden, [](Config& c) { c.logit_softcap = 0; }},
      {"query_pre_attn_scalar", kGemma2Golden, [](Config& c) { c.score_scale = 0; }},
      {"window", kGemma2Golden, [](Config& c) { c.window.clear(); }},
      {"window off by one", kGemma2Golden, [](Config& c) { c.window = "5,0,5"; }},
      {"which layers", kGemma2Golden, [](Config& c) { c.window = "0,4,0"; }},
      {"scale of embeddings", kGemma2Golden, [](Config& c) { c.embedding_scale = 1; }},
      {"GELU by tanh", kGemma2Golden, [](Config& c) { c.activation = LayerActivation::kGeglu; }},
      {"two bases", kGemma3Golden, [](Config& c) { c.rope_local_base = 0; }},
      {"base of the others", kGemma3Golden, [](Config& c) { c.rope_base = c.rope_local_base; }},
      {"stretched angles", kGemma3Golden, [](Config& c) { c.rotary_divisors.clear(); }},
  };
  for (const Trap& trap : traps) {
    Config config = read_config(config_of(trap.golden));
    trap.forget(config);
    const double error = error_of_logits(logits_of(*model_with(trap.golden, config)), trap.golden);
    EXPECT_GT(error, trap.name == std::string("GELU by tanh") ? 4e-5 : 1e-3) << trap.name;
  }
}

TEST(GemmaTraps, GainsOfAFolderLackTheOneThatThoseOfAFileHave) {
  const LanguageModelConfig config = read_config(config_of(kGemma2Golden));
  const auto model = model_with(kGemma2Golden, config);
  const std::vector<GemmaTensor> tensors = tensors_of(kGemma2Golden);
  const float gain = tensors[1].values[3];
  const auto* const norm = model->parameters()[1 + 2];  // behind qkv and out
  ASSERT_EQ(norm->name, "blocks.0.attention_norm.weight");
  EXPECT_EQ(norm->value.vec<float>()[3], 1 + gain);
  std::vector<NamedTensor> ours;
  for (const Parameter* one : model->parameters()) ours.push_back({one->name, one->value});
  const auto written = [&](ModelForm form, const std::string& name) {
    const auto places = tensor_places(architecture("gemma2"), form, config);
    for (const NamedTensor& one : tensors_at(places, config, ours)) {
      if (one.name == name) return one.tensor.vec<float>()[3];
    }
    throw std::out_of_range(name);
  };
  EXPECT_EQ(written(ModelForm::kGguf, "blk.0.attn_norm.weight"), 1 + gain);
  EXPECT_NEAR(written(ModelForm::kHuggingFace, "model.layers.0.input_layernorm.weight"), gain,
              6e-8);
}

// Older files leave out what is usual, and say angles in other words.
TEST(GemmaConfig, WhatIsLeftOutIsAsTransformersHasIt) {
  const LanguageModelConfig second = read_config({{"model_type", "gemma2"}});
  EXPECT_EQ(second.vocabulary, 256000);
  EXPECT_EQ(layer_windows(second)[0], 4095);
  EXPECT_EQ(layer_windows(second)[1], 0);
  EXPECT_EQ(second.softcap, 50);
  EXPECT_EQ(second.logit_softcap, 30);
  EXPECT_EQ(second.score_scale, 0);
  EXPECT_TRUE(second.tie);
  EXPECT_EQ(read_config({{"model_type", "gemma2"}, {"attn_logit_softcapping", Json()}}).softcap, 0);
  const LanguageModelConfig third =
      read_config({{"model_type", "gemma3_text"},
                   {"query_pre_attn_scalar", 168},
                   {"rope_scaling", Json::Object{{"rope_type", "linear"}, {"factor", 8.0}}}});
  EXPECT_THAT(layer_windows(third), testing::Contains(0).Times(26 / 6));
  EXPECT_EQ(layer_windows(third)[5], 0);
  EXPECT_EQ(third.rope_base, 1e6);
  EXPECT_EQ(third.rope_local_base, 1e4);
  EXPECT_EQ(third.score_scale, 1 / std::sqrt(168.0));
  EXPECT_THAT(divisors_of(third), testing::Each(8));
  EXPECT_EQ(third.logit_softcap, 0);
}

TEST(GemmaConfig, WhatIsNotKnownIsNamed) {
  const auto with = [](const GoldenGemma& g, const char* key, Json value) {
    Json::Object config = config_of(g);
    std::erase_if(config, [&](const auto& one) { return one.first == key; });
    config.emplace_back(key, std::move(value));
    return read_config(std::move(config));
  };
  EXPECT_THROWS(with(kGemma3Golden, "use_bidirectional_attention", true), kModelWrongKind,
                "'use_bidirectional_attention' is true");
  EXPECT_THROWS(with(kGemma2Golden, "attention_bias", true), kModelWrongKind, "'attention_bias'");
  EXPECT_THROWS(with(kGemma2Golden, "sliding_window", 1), kModelDamaged, "at least 2");
  EXPECT_THROWS(with(kGemma2Golden, "query_pre_attn_scalar", 0), kModelDamaged,
                "'query_pre_attn_scalar' is 0");
  EXPECT_THROWS(with(kGemma2Golden, "hidden_activation", "quick_gelu"), kModelWrongKind,
                "gelu_pytorch_tanh");
  const Json::Object stretched = {
      {"sliding_attention", Json::Object{{"rope_type", "linear"}, {"factor", 2.0}}}};
  EXPECT_THROWS(with(kGemma3Golden, "rope_parameters", stretched), kModelWrongKind,
                "sliding_attention");
}

constexpr std::string_view kTokenizerJson =
    R"({"added_tokens": [], "normalizer": null, "post_processor": null,)"
    R"( "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},)"
    R"( "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "merges": [], "vocab":)"
    R"( {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5, "g": 6, "h": 7}}})";

// A model of images and texts: its language model is read, as both forms of transformers write it.
TEST(GemmaFolder, TheTextPartOfAModelWithImagesIsRead) {
  Json::Object text = config_of(kGemma3Golden);
  const Json config = Json::Object{
      {"model_type", "gemma3"},   {"architectures", Json::Array{"Gemma3ForConditionalGeneration"}},
      {"text_config", text},      {"vision_config", Json::Object{{"hidden_size", 8}}},
      {"mm_tokens_per_image", 4}, {"eos_token_id", Json::Array{1, 2}}};
  for (const char* const prefix : {"model.language_model.", "language_model.model."}) {
    const TestFolder folder;
    write_file_atomically(folder / "config.json", config.pretty());
    write_file_atomically(folder / "tokenizer.json", kTokenizerJson);
    std::vector<NamedTensor> tensors = {{"model.vision_tower.x.weight", Tensor({2})},
                                        {"multi_modal_projector.y", Tensor({3})}};
    for (const GemmaTensor& one : tensors_of(kGemma3Golden)) {
      const std::string rest = one.hugging_face.substr(std::string("model.").size());
      tensors.push_back({prefix + rest, Tensor::of<float>(one.shape, one.values)});
    }
    write_safetensors(folder / "model.safetensors", tensors);
    const PretrainedLanguageModel loaded = load_hugging_face(folder.path());
    EXPECT_EQ(loaded.text.architecture, "gemma3");
    EXPECT_THAT(loaded.text.ends, testing::ElementsAre(1, 2));
    EXPECT_LT(error_of_logits(logits_of(*loaded.model), kGemma3Golden), 2e-5);
    tensors.push_back({"model.layers.0.other", Tensor({1})});
    write_safetensors(folder / "model.safetensors", tensors);
    EXPECT_THROWS(load_hugging_face(folder.path()), kModelWrongKind, "other");
  }
  const Json alone = language_model_config(config);
  EXPECT_EQ(alone.at("model_type").text(), "gemma3_text");
  EXPECT_EQ(alone.at("architectures").array().at(0).text(), "Gemma3ForCausalLM");
  EXPECT_EQ(read_config(alone.object()), read_config(text));
}

// The metadata of an exported file, read again.
TEST(GemmaFile, AFileIsReadAsItWasWritten) {
  for (const GoldenGemma& golden : kGoldenGemmas) {
    LanguageModelConfig config = read_config(config_of(golden));
    config.score_scale = 0;
    config.rotary_divisors.clear();
    const auto written = [&](const LanguageModelConfig& c) {
      const std::vector<GgufEntry> metadata = gguf_sizes(architecture(golden.name), c);
      const std::vector<NamedTensor> table = {
          {"token_embd.weight", Tensor({kGemmaVocabulary, kGemmaWidth})}};
      return gguf_bytes(metadata, table, gguf_weight_types()[0]);
    };
    const TestFolder folder;
    write_file_atomically(folder / "m.gguf", written(config));
    LanguageModelConfig read = load_gguf_config(folder / "m.gguf");
    // Files have float32.
    EXPECT_NEAR(read.norm_epsilon, config.norm_epsilon, 1e-9);
    EXPECT_NEAR(read.softcap, config.softcap, 1e-6);
    read.norm_epsilon = config.norm_epsilon;
    read.softcap = config.softcap;
    EXPECT_EQ(read, config);
    LanguageModelConfig other = config;
    other.activation = LayerActivation::kSwiglu;
    EXPECT_THROWS(written(other), kModelWrongKind, "the activation");
    other = config;
    other.score_scale = 0.3;
    EXPECT_THROWS(written(other), kModelWrongKind, "the scores");
    if (golden.name == "gemma") continue;
    other = config;
    other.window = golden.name == "gemma2" ? "4,0,0" : "0,3,3,0";
    EXPECT_THROWS(written(other), kModelWrongKind, "does not compute these windows");
  }
}

}  // namespace
}  // namespace fovea
