// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "fovea/base/check.h"

namespace fovea {

namespace {

using Config = LanguageModelConfig;

// What an architecture has in place of an option, and whether a model has it.
struct Need {
  std::string_view has;
  bool (*holds)(const Config& c);
};

struct Architecture {
  std::string_view name;        // its class in transformers
  std::string_view type;        // "model_type"
  std::span<const Need> needs;  // beside kCommon
  void (*configure)(const Config& c, Json::Object& config);
  void (*place)(const Config& c, std::vector<TensorPlace>& tensors);
};

bool has_one_window(const Config& c) {
  const std::vector<index> windows = layer_windows(c);
  const auto narrow = [](index window) { return window > 0; };
  const auto first = std::ranges::find_if(windows, narrow);
  return std::all_of(first, windows.end(),
                     [&](index window) { return window == 0 || window == *first; });
}

bool has_no_window(const Config& c) {
  return std::ranges::all_of(layer_windows(c), [](index window) { return window == 0; });
}

// How many keys a query of the narrow layers sees, its own among them; 0: all.
index window_of(const Config& c) {
  const index most = std::ranges::max(layer_windows(c));
  return most > 0 ? most + 1 : 0;
}

constexpr Need kCommon[] = {
    {"--model transformer",
     [](const Config& c) { return c.kind == LanguageModelKind::kTransformer; }},
    {"no --compat", [](const Config& c) { return c.compat.empty(); }},
    {"--norm-position pre", [](const Config& c) { return c.norm_position == NormPosition::kPre; }},
    {"--embedding-scale 1", [](const Config& c) { return c.embedding_scale == 1; }},
    {"--score dot", [](const Config& c) { return c.score == AttentionScoreKind::kDot; }},
    {"--attention-norm softmax",
     [](const Config& c) { return c.attention_norm == AttentionNormKind::kSoftmax; }},
    {"--no-log-n-scale", [](const Config& c) { return !c.log_n_scale; }},
    {"--softcap 0", [](const Config& c) { return c.softcap == 0; }},
    {"--no-sink", [](const Config& c) { return !c.sink; }},
    // Their output projection has no bias.
    {"--tie or --no-bias", [](const Config& c) { return c.tie || !c.bias; }},
};

constexpr Need kTable = {"--position learned", [](const Config& c) {
                           return c.position == PositionKind::kLearned &&
                                  c.position_join == PositionJoin::kAdd;
                         }};
constexpr Need kRotary = {"--position rotary",
                          [](const Config& c) { return c.position == PositionKind::kRotary; }};
constexpr Need kLayerNorm = {"--norm layer", [](const Config& c) {
                               return c.norm == NormKind::kLayer &&
                                      c.ln_variant == LayerNormVariant::kStandard;
                             }};
constexpr Need kRmsNorm = {"--norm rms", [](const Config& c) { return c.norm == NormKind::kRms; }};
constexpr Need kGated = {"--activation swiglu, geglu or reglu",
                         [](const Config& c) { return is_gated(c.activation); }};
constexpr Need kNotGated = {"--activation gelu, gelu-tanh, silu or relu",
                            [](const Config& c) { return !is_gated(c.activation); }};
constexpr Need kNoBias = {"--no-bias", [](const Config& c) { return !c.bias; }};
constexpr Need kNoQkNorm = {"--no-qk-norm", [](const Config& c) { return !c.qk_norm; }};
constexpr Need kQkNorm = {"--qk-norm", [](const Config& c) { return c.qk_norm; }};
constexpr Need kNoWindow = {"--window 0", has_no_window};
constexpr Need kOneWindow = {"one --window", has_one_window};
constexpr Need kEveryWindow = {"the same --window in all layers", [](const Config& c) {
                                 return has_one_window(c) && std::ranges::min(layer_windows(c)) > 0;
                               }};
constexpr Need kWholeHeads = {
    "heads that make up --width, each with its own keys",
    [](const Config& c) { return c.heads * c.head_dim == c.width && c.kv_heads == c.heads; }};

constexpr Need kOfGpt2[] = {kTable, kLayerNorm, kNotGated, kNoQkNorm, kNoWindow, kWholeHeads};
constexpr Need kOfLlama[] = {kRotary, kRmsNorm, kGated, kNoQkNorm, kNoWindow};
constexpr Need kOfMistral[] = {kRotary, kRmsNorm, kGated, kNoQkNorm, kNoBias, kEveryWindow};
constexpr Need kOfQwen3[] = {kRotary, kRmsNorm, kGated, kQkNorm, kNoBias, kOneWindow};

// The names of transformers (ACT2FN) for what an activation computes.
std::string_view activation_of(const Config& c) {
  switch (function_of(c.activation)) {
    case Activation::kGelu:
      return "gelu";
    case Activation::kGeluTanh:
      return "gelu_pytorch_tanh";
    case Activation::kSilu:
      return "silu";
    default:
      return "relu";
  }
}

constexpr double kNormEpsilon = 1e-5;  // of nn/norm.h

// A linear layer: rows of one of ours that may hold several of theirs.
struct Linear {
  std::string theirs, ours;
  index out = 0, in = 0;
  index first = 0;
  bool transposed = false;
};

enum class BiasRule { kNone, kOurs, kZeros };

// What they call their biases does not differ: NAME.bias beside NAME.weight.
BiasRule bias_rule(const Config& c, bool always) {
  if (c.bias) return BiasRule::kOurs;
  return always ? BiasRule::kZeros : BiasRule::kNone;
}

void add_bias(std::vector<TensorPlace>& tensors, const Linear& l, BiasRule rule) {
  if (rule == BiasRule::kNone) return;
  tensors.push_back({l.theirs + ".bias",
                     {l.out},
                     rule == BiasRule::kOurs ? l.ours + ".bias" : std::string(),
                     l.first});
}

void add_linear(std::vector<TensorPlace>& tensors, const Linear& l, BiasRule bias) {
  tensors.push_back({l.theirs + ".weight", l.transposed ? Shape{l.in, l.out} : Shape{l.out, l.in},
                     l.ours + ".weight", l.first, l.transposed});
  add_bias(tensors, l, bias);
}

void add_norm(std::vector<TensorPlace>& tensors, const std::string& theirs, const std::string& ours,
              index width, BiasRule bias) {
  tensors.push_back({theirs + ".weight", {width}, ours + ".weight"});
  add_bias(tensors, {theirs, ours, width}, bias);
}

void add_ends(const Config& c, std::vector<TensorPlace>& tensors, const std::string& tokens) {
  tensors.push_back({tokens, {c.vocabulary, c.width}, "embedding.tokens"});
  if (!c.tie) tensors.push_back({"lm_head.weight", {c.vocabulary, c.width}, "output.weight"});
}

void place_gpt2(const Config& c, std::vector<TensorPlace>& tensors) {
  const BiasRule bias = bias_rule(c, true);
  add_ends(c, tensors, "transformer.wte.weight");
  tensors.push_back({"transformer.wpe.weight", {c.position_max, c.width}, "embedding.positions"});
  for (index n = 0; n < c.layers; ++n) {
    const std::string theirs = fmt::format("transformer.h.{}.", n),
                      ours = fmt::format("blocks.{}.", n);
    const auto linear = [&](const char* their, const char* our, index out, index in) {
      add_linear(tensors, {theirs + their, ours + our, out, in, 0, true}, bias);
    };
    add_norm(tensors, theirs + "ln_1", ours + "attention_norm", c.width, bias);
    linear("attn.c_attn", "attention.qkv", 3 * c.width, c.width);
    linear("attn.c_proj", "attention.out", c.width, c.width);
    add_norm(tensors, theirs + "ln_2", ours + "feed_forward_norm", c.width, bias);
    linear("mlp.c_fc", "feed_forward.in", c.ff, c.width);
    linear("mlp.c_proj", "feed_forward.out", c.width, c.ff);
  }
  add_norm(tensors, "transformer.ln_f", "norm", c.width, bias);
}

void place_llama(const Config& c, std::vector<TensorPlace>& tensors) {
  const BiasRule bias = bias_rule(c, false);
  const index of_queries = c.heads * c.head_dim, of_keys = c.kv_heads * c.head_dim;
  add_ends(c, tensors, "model.embed_tokens.weight");
  for (index n = 0; n < c.layers; ++n) {
    const std::string theirs = fmt::format("model.layers.{}.", n),
                      ours = fmt::format("blocks.{}.", n);
    const auto linear = [&](const char* their, const char* our, index out, index in,
                            index first = 0) {
      add_linear(tensors, {theirs + their, ours + our, out, in, first}, bias);
    };
    add_norm(tensors, theirs + "input_layernorm", ours + "attention_norm", c.width,
             BiasRule::kNone);
    linear("self_attn.q_proj", "attention.qkv", of_queries, c.width);
    linear("self_attn.k_proj", "attention.qkv", of_keys, c.width, of_queries);
    linear("self_attn.v_proj", "attention.qkv", of_keys, c.width, of_queries + of_keys);
    linear("self_attn.o_proj", "attention.out", c.width, of_queries);
    for (const char* name : {"q_norm", "k_norm"}) {
      if (c.qk_norm) {
        add_norm(tensors, theirs + "self_attn." + name, ours + "attention." + name, c.head_dim,
                 BiasRule::kNone);
      }
    }
    add_norm(tensors, theirs + "post_attention_layernorm", ours + "feed_forward_norm", c.width,
             BiasRule::kNone);
    linear("mlp.gate_proj", "feed_forward.gate", c.ff, c.width);
    linear("mlp.up_proj", "feed_forward.in", c.ff, c.width);
    linear("mlp.down_proj", "feed_forward.out", c.width, c.ff);
  }
  add_norm(tensors, "model.norm", "norm", c.width, BiasRule::kNone);
}

void configure_gpt2(const Config& c, Json::Object& config) {
  for (const auto& [key, value] : {std::pair{"n_embd", c.width},
                                   {"n_layer", c.layers},
                                   {"n_head", c.heads},
                                   {"n_positions", c.position_max},
                                   {"n_inner", c.ff}}) {
    config.emplace_back(key, value);
  }
  config.emplace_back("activation_function", activation_of(c));
  config.emplace_back("layer_norm_epsilon", kNormEpsilon);
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    config.emplace_back(key, c.dropout);
  }
}

// What Llama, Mistral and Qwen3 share.
void configure_llama(const Config& c, Json::Object& config) {
  for (const auto& [key, value] : {std::pair{"hidden_size", c.width},
                                   {"intermediate_size", c.ff},
                                   {"num_hidden_layers", c.layers},
                                   {"num_attention_heads", c.heads},
                                   {"num_key_value_heads", c.kv_heads},
                                   {"head_dim", c.head_dim},
                                   {"max_position_embeddings", c.block}}) {
    config.emplace_back(key, value);
  }
  config.emplace_back("hidden_act", activation_of(c));
  config.emplace_back("rms_norm_eps", kNormEpsilon);
  // Where transformers 5 reads the base, and where older versions and other programs do.
  config.emplace_back("rope_parameters",
                      Json::Object{{"rope_type", "default"}, {"rope_theta", c.rope_base}});
  config.emplace_back("rope_theta", c.rope_base);
  config.emplace_back("attention_bias", c.bias);
  config.emplace_back("attention_dropout", c.dropout);
}

void configure_plain_llama(const Config& c, Json::Object& config) {
  configure_llama(c, config);
  config.emplace_back("mlp_bias", c.bias);
}

void configure_mistral(const Config& c, Json::Object& config) {
  configure_llama(c, config);
  config.emplace_back("sliding_window", window_of(c));
}

void configure_qwen3(const Config& c, Json::Object& config) {
  configure_llama(c, config);
  const index window = window_of(c);
  Json::Array types;
  for (const index one : layer_windows(c)) {
    types.emplace_back(one > 0 ? "sliding_attention" : "full_attention");
  }
  config.emplace_back("layer_types", std::move(types));
  config.emplace_back("use_sliding_window", window > 0);
  config.emplace_back("sliding_window", window > 0 ? Json(window) : Json());
}

constexpr std::array kArchitectures = {
    Architecture{"GPT2LMHeadModel", "gpt2", kOfGpt2, configure_gpt2, place_gpt2},
    Architecture{"LlamaForCausalLM", "llama", kOfLlama, configure_plain_llama, place_llama},
    Architecture{"MistralForCausalLM", "mistral", kOfMistral, configure_mistral, place_llama},
    Architecture{"Qwen3ForCausalLM", "qwen3", kOfQwen3, configure_qwen3, place_llama},
};

// What an architecture has and the model has not.
std::vector<std::string> differences(const Config& c, const Architecture& architecture) {
  std::vector<std::string> found;
  for (const auto needs : {std::span<const Need>(kCommon), architecture.needs}) {
    for (const Need& need : needs) {
      if (!need.holds(c)) found.emplace_back(need.has);
    }
  }
  return found;
}

[[noreturn]] void no_architecture(std::string_view closest, const std::vector<std::string>& has) {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("no architecture of transformers computes what this model does; the "
                          "closest, {}, has {}",
                          closest, fmt::join(has, ", ")),
              "train a model with these options to export it");
}

Tensor transposed(const Tensor& matrix) {
  const auto from = matrix.rows<float>();
  Tensor result = Tensor::empty({from.columns, from.rows});
  const auto to = result.rows<float>();
  for (index i = 0; i < from.rows; ++i) {
    for (index j = 0; j < from.columns; ++j) to[j][i] = from[i][j];
  }
  return result;
}

}  // namespace

HuggingFaceForm hugging_face_form(const LanguageModelConfig& c) {
  const Architecture* closest = nullptr;
  std::vector<std::string> fewest;
  for (const Architecture& architecture : kArchitectures) {
    std::vector<std::string> found = differences(c, architecture);
    if (closest != nullptr && found.size() >= fewest.size()) continue;
    closest = &architecture;
    fewest = std::move(found);
  }
  if (!fewest.empty()) no_architecture(closest->name, fewest);
  HuggingFaceForm form;
  form.config.emplace_back("architectures", Json::Array{Json(closest->name)});
  form.config.emplace_back("model_type", closest->type);
  form.config.emplace_back("vocab_size", c.vocabulary);
  form.config.emplace_back("tie_word_embeddings", c.tie);
  closest->configure(c, form.config);
  closest->place(c, form.tensors);
  return form;
}

std::vector<NamedTensor> hugging_face_tensors(const HuggingFaceForm& form,
                                              std::span<const NamedTensor> ours) {
  std::unordered_map<std::string_view, const Tensor*> by_name;
  for (const NamedTensor& one : ours) by_name.emplace(one.name, &one.tensor);
  std::vector<NamedTensor> theirs;
  for (const TensorPlace& place : form.tensors) {
    if (place.ours.empty()) {
      theirs.push_back({place.theirs, Tensor(place.shape)});
      continue;
    }
    const auto found = by_name.find(place.ours);
    check(found != by_name.end(), "the model has no tensor {}", place.ours);
    const index rows = place.transposed ? place.shape[1] : place.shape[0];
    const Tensor part = found->second->to(DType::kFloat32).slice(place.first, place.first + rows);
    theirs.push_back({place.theirs, place.transposed ? transposed(part) : part});
    check(theirs.back().tensor.shape() == place.shape, "{} is {}, which does not fit {}",
          place.ours, found->second->describe(), place.theirs);
  }
  return theirs;
}

}  // namespace fovea
