// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/pretrained/folder_subwords.h"
#include "fovea/pretrained/folder_tensors.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/mxfp4.h"
#include "fovea/pretrained/pretrained.h"
#include "fovea/pretrained/rotary_scaling.h"

namespace fovea {

namespace {

using Config = LanguageModelConfig;

struct ActivationName {
  std::string_view name;  // of transformers (ACT2FN)
  std::optional<LayerActivation> plain, gated;
};

// The first name of an activation is the one that is written.
constexpr ActivationName kActivations[] = {
    {"gelu", LayerActivation::kGelu, LayerActivation::kGeglu},
    {"gelu_pytorch_tanh", LayerActivation::kGeluTanh, LayerActivation::kGegluTanh},
    {"gelu_new", LayerActivation::kGeluTanh, LayerActivation::kGegluTanh},
    {"gelu_fast", LayerActivation::kGeluTanh, LayerActivation::kGegluTanh},
    {"silu", LayerActivation::kSilu, LayerActivation::kSwiglu},
    {"swish", LayerActivation::kSilu, LayerActivation::kSwiglu},
    {"relu", LayerActivation::kRelu, LayerActivation::kReglu},
};

// ------------------------------------------------------------------------------------ written

void write_gpt2(const Config& c, Json::Object& out) {
  for (const auto& [key, value] : {std::pair{"n_embd", c.width},
                                   {"n_layer", c.layers},
                                   {"n_head", c.heads},
                                   {"n_positions", c.position_max},
                                   {"n_inner", c.ff}}) {
    out.emplace_back(key, value);
  }
  out.emplace_back("activation_function", hugging_face_name(c.activation));
  out.emplace_back("layer_norm_epsilon", c.norm_epsilon);
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    out.emplace_back(key, c.dropout);
  }
}

// The base in layers with a window.
double local_base(const Config& c) {
  return c.rope_local_base > 0 ? c.rope_local_base : c.rope_base;
}

// Where transformers 5 reads the base.
Json::Object rotary_parameters(std::string_view architecture, const Config& c) {
  const auto of = [](double base) {
    return Json::Object{{"rope_type", "default"}, {"rope_theta", base}};
  };
  if (architecture != "gemma3") return of(c.rope_base);
  return {{"full_attention", of(c.rope_base)}, {"sliding_attention", of(local_base(c))}};
}

// Llama, Mistral, Qwen3 and Gemma share these keys.
void write_llama(const Config& c, std::string_view architecture, Json::Object& out) {
  for (const auto& [key, value] : {std::pair{"hidden_size", c.width},
                                   {"intermediate_size", c.ff},
                                   {"num_hidden_layers", c.layers},
                                   {"num_attention_heads", c.heads},
                                   {"num_key_value_heads", c.kv_heads},
                                   {"head_dim", c.head_dim},
                                   {"max_position_embeddings", c.block}}) {
    out.emplace_back(key, value);
  }
  out.emplace_back("hidden_act", hugging_face_name(c.activation));
  out.emplace_back("rms_norm_eps", c.norm_epsilon);
  out.emplace_back("rope_parameters", rotary_parameters(architecture, c));
  // Where older versions and other programs read it.
  out.emplace_back("rope_theta", c.rope_base);
  out.emplace_back("attention_bias", c.bias);
  out.emplace_back("attention_dropout", c.dropout);
}

void write_layer_types(const Config& c, Json::Object& out) {
  Json::Array types;
  for (const index window : layer_windows(c)) {
    types.emplace_back(window > 0 ? "sliding_attention" : "full_attention");
  }
  out.emplace_back("layer_types", std::move(types));
}

void write_windows(const Config& c, Json::Object& out) {
  const auto seen = seen_keys(c);
  write_layer_types(c, out);
  out.emplace_back("use_sliding_window", seen.has_value());
  out.emplace_back("sliding_window", seen ? Json(*seen) : Json());
}

Json cap_or_null(double cap) { return cap > 0 ? Json(cap) : Json(); }

void write_gemma(const Config& c, std::string_view architecture, Json::Object& out) {
  write_layer_types(c, out);
  // Layers without a window have no use for it, but transformers asks for a number.
  out.emplace_back("sliding_window", seen_keys(c).value_or(c.block));
  out.emplace_back("hidden_activation", hugging_face_name(c.activation));
  out.emplace_back("query_pre_attn_scalar", query_scalar(c));
  out.emplace_back("attn_logit_softcapping", cap_or_null(c.softcap));
  out.emplace_back("final_logit_softcapping", cap_or_null(c.logit_softcap));
  if (architecture == "gemma3") out.emplace_back("rope_local_base_freq", local_base(c));
}

// ------------------------------------------------------------------------------------------- read

constexpr double kLeast = std::numeric_limits<double>::min(), kMost = 1e30;

index size(const ForeignObject& config, std::string_view key, std::optional<index> usual = {}) {
  return config.whole(key, 1, kLargestSize, usual);
}

// What is done to the angles of rotary positions, whose base is known but for these rules.
void take_rotary(const ForeignObject& angles, Config& c) {
  const double trained = static_cast<double>(c.block);
  RotaryRules rules = read_rotary_rules(angles, {c.head_dim, c.rope_base, trained});
  c.rope_base = rules.base;
  c.rotary_divisors = divisors_text(rules.scaling.divisors);
  c.rotary_amplitude = rules.scaling.amplitude;
  if (rules.reach > trained) {
    c.block = static_cast<index>(std::min(rules.reach, static_cast<double>(kLargestSize)));
  }
}

// The base of rotary positions, and what is done to their angles. The head's columns and the
// positions are known.
void read_rotary(const ForeignObject& config, Config& c, double usual = 10000) {
  c.rope_base = config.number("rope_theta", kLeast, kMost, usual);
  for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (config.has(key)) take_rotary(config.object(key), c);
  }
}

void read_gpt2(const ForeignObject& config, Config& c) {
  c.width = size(config, "n_embd");
  c.layers = config.whole("n_layer", 1, kMostLayers);
  c.heads = size(config, "n_head");
  c.block = c.position_max = size(config, "n_positions");
  c.ff = size(config, "n_inner", 4 * c.width);
  c.activation = hugging_face_activation(config, "activation_function", "gelu_new", false);
  c.norm_epsilon = config.number("layer_norm_epsilon", kLeast, kMost, 1e-5);
  config.require("scale_attn_weights", true);
  config.ignore({"reorder_and_upcast_attn"});  // how it rounds
  c.tie = config.flag("tie_word_embeddings", true);
}

// All but the angles.
void read_llama_sizes(const ForeignObject& config, Config& c) {
  c.width = size(config, "hidden_size");
  c.ff = size(config, "intermediate_size");
  c.layers = config.whole("num_hidden_layers", 1, kMostLayers);
  c.heads = size(config, "num_attention_heads");
  c.kv_heads = size(config, "num_key_value_heads", c.heads);
  c.head_dim = size(config, "head_dim", std::max<index>(1, c.width / c.heads));
  c.block = size(config, "max_position_embeddings", 2048);
  c.activation = hugging_face_activation(config, "hidden_act", "silu", true);
  c.norm_epsilon = config.number("rms_norm_eps", kLeast, kMost, 1e-6);
  c.tie = config.flag("tie_word_embeddings", false);
}

void read_llama(const ForeignObject& config, Config& c) {
  read_llama_sizes(config, c);
  read_rotary(config, c);
}

// What transformers takes where a file says nothing of angles.
void read_gpt_oss_rotary(const ForeignObject& config, Config& c) {
  constexpr double kUsualBase = 150000;
  read_rotary(config, c, kUsualBase);
  if (config.has("rope_parameters") || config.has("rope_scaling")) return;
  const Json usual = Json::Object{
      {"rope_type", "yarn"}, {"factor", 32.0},    {"beta_fast", 32.0},
      {"beta_slow", 1.0},    {"truncate", false}, {"original_max_position_embeddings", 4096.0}};
  take_rotary(ForeignObject(usual, config.where()), c);
}

// Whether each layer has a window: as the list of their kinds says, or as is usual.
std::vector<bool> have_windows(const ForeignObject& config, std::vector<bool> narrow) {
  if (!config.has("layer_types")) return narrow;
  const Json::Array& types = config.array("layer_types");
  if (types.size() != narrow.size()) config.fail_value("layer_types", "an entry for each layer");
  for (std::size_t n = 0; n < types.size(); ++n) {
    const std::string type = types[n].line();
    narrow[n] = type == "\"sliding_attention\"";
    if (!narrow[n] && type != "\"full_attention\"") {
      config.refuse("layer_types", "sliding_attention and full_attention");
    }
  }
  return narrow;
}

std::vector<bool> narrow_from(index first, index layers) {
  std::vector<bool> narrow;
  for (index n = 0; n < layers; ++n) narrow.push_back(n >= first);
  return narrow;
}

void set_windows(const ForeignObject& config, const std::vector<bool>& usual, index seen,
                 Config& c) {
  const std::vector<bool> narrow = have_windows(config, usual);
  const bool has_some = std::ranges::find(narrow, true) != narrow.end();
  if (has_some && seen < 2) config.fail_value("sliding_window", "at least 2");
  c.window = windows_of(narrow, seen);
}

// Layers from `first` on have the window, unless the list of their kinds says otherwise.
void read_windows(const ForeignObject& config, Config& c, index first) {
  const index seen = config.whole("sliding_window", 0, kLargestSize, 0);
  set_windows(config, narrow_from(seen > 0 ? first : c.layers, c.layers), seen, c);
}

// A configuration of Gemma leaves out what is as transformers has it.
struct GemmaDefaults {
  index vocabulary, block, width, ff, layers, heads, kv_heads;
  index pattern;  // every so many-th layer has no window
  double cap, logit_cap;
};

const GemmaDefaults& gemma_defaults(std::string_view name) {
  static constexpr GemmaDefaults kFirst{256000, 8192, 3072, 24576, 28, 16, 16, 1, 0, 0};
  static constexpr GemmaDefaults kSecond{256000, 8192, 2304, 9216, 26, 8, 4, 2, 50, 30};
  static constexpr GemmaDefaults kThird{262208, 131072, 2304, 9216, 26, 8, 4, 6, 0, 0};
  return name == "gemma" ? kFirst : name == "gemma2" ? kSecond : kThird;
}

// Layers with a window have angles of their own, which nothing stretches.
void read_gemma3_rotary(const ForeignObject& config, Config& c) {
  c.rope_base = config.number("rope_theta", kLeast, kMost, 1e6);
  double local = config.number("rope_local_base_freq", kLeast, kMost, 1e4);
  if (config.has("rope_parameters")) {
    const ForeignObject kinds = config.object("rope_parameters");
    if (kinds.has("sliding_attention")) {
      const ForeignObject angles = kinds.object("sliding_attention");
      const RotaryRules rules = read_rotary_rules(angles, {c.head_dim, local, 0});
      if (!rules.scaling.divisors.empty()) angles.refuse("rope_type", "default");
      local = rules.base;
    }
    if (kinds.has("full_attention")) take_rotary(kinds.object("full_attention"), c);
    kinds.refuse_others();
  }
  if (config.has("rope_scaling")) take_rotary(config.object("rope_scaling"), c);
  if (seen_keys(c)) c.rope_local_base = local;
}

double read_cap(const ForeignObject& config, std::string_view key, double usual) {
  return config.number(key, 0, kMost, config.is_null(key) ? 0 : usual);
}

// What the second and the third have beside the first.
void read_later_gemma(const ForeignObject& config, std::string_view name, Config& c) {
  const GemmaDefaults& usual = gemma_defaults(name);
  c.activation = hugging_face_activation(config, "hidden_activation", "gelu_pytorch_tanh", true);
  const index scalar = size(config, "query_pre_attn_scalar", 256);
  c.score_scale = scalar == c.head_dim ? 0 : 1 / std::sqrt(static_cast<double>(scalar));
  c.softcap = read_cap(config, "attn_logit_softcapping", usual.cap);
  c.logit_softcap = read_cap(config, "final_logit_softcapping", usual.logit_cap);
  const index every = config.whole("sliding_window_pattern", 1, kLargestSize, usual.pattern);
  set_windows(config, narrow_but_every(c.layers, every), size(config, "sliding_window", 4096), c);
  // What transformers does not read.
  config.ignore({"hidden_act", "_sliding_window_pattern", "cache_implementation"});
}

// The exact GELU of older files stands for that by tanh, as transformers has it.
void read_first_gemma(const ForeignObject& config) {
  const std::string name = config.text("hidden_act", "gelu_pytorch_tanh");
  if (name != "gelu" && name != "gelu_pytorch_tanh")
    config.refuse("hidden_act", "gelu_pytorch_tanh");
  config.ignore({"hidden_activation"});  // which transformers does not read
}

void read_gemma(const ForeignObject& config, std::string_view name, Config& c) {
  const GemmaDefaults& usual = gemma_defaults(name);
  c.width = size(config, "hidden_size", usual.width);
  c.ff = size(config, "intermediate_size", usual.ff);
  c.layers = config.whole("num_hidden_layers", 1, kMostLayers, usual.layers);
  c.heads = size(config, "num_attention_heads", usual.heads);
  c.kv_heads = size(config, "num_key_value_heads", usual.kv_heads);
  c.head_dim = size(config, "head_dim", 256);
  c.block = size(config, "max_position_embeddings", usual.block);
  c.norm_epsilon = config.number("rms_norm_eps", kLeast, kMost, 1e-6);
  c.embedding_scale = std::sqrt(static_cast<double>(c.width));
  if (name == "gemma") {
    read_first_gemma(config);
  } else {
    read_later_gemma(config, name, c);
  }
  if (name == "gemma3") {
    read_gemma3_rotary(config, c);
  } else {
    read_rotary(config, c);
  }
  c.tie = config.flag("tie_word_embeddings", true);
  config.require("attention_bias", false);
  config.require("use_bidirectional_attention", false);
}

// Values in MXFP4 are widened when they are read.
void require_known_quantization(const ForeignObject& config) {
  constexpr std::string_view kKey = "quantization_config";
  if (!config.has(kKey)) return;
  const ForeignObject how = config.object(kKey);
  how.require("quant_method", "mxfp4");
  how.ignore({"modules_to_not_convert", "dequantize"});
  how.ignore_what_is_off();
  how.refuse_others();
}

void read_gpt_oss(const ForeignObject& config, Config& c) {
  read_llama_sizes(config, c);
  c.kv_heads = size(config, "num_key_value_heads", 8);
  c.head_dim = size(config, "head_dim", 64);
  c.block = size(config, "max_position_embeddings", 131072);
  c.norm_epsilon = config.number("rms_norm_eps", kLeast, kMost, 1e-5);
  read_gpt_oss_rotary(config, c);
  c.experts = size(config, "num_local_experts", 128);
  c.experts_per_token = config.whole("num_experts_per_tok", 1, c.experts, 4);
  if (config.whole("experts_per_token", 1, c.experts, c.experts_per_token) != c.experts_per_token) {
    config.refuse("experts_per_token", "that of num_experts_per_tok");
  }
  std::vector<bool> narrow;
  for (index n = 0; n < c.layers; ++n) narrow.push_back(n % 2 == 0);
  set_windows(config, narrow, size(config, "sliding_window", 128), c);
  config.require("attention_bias", true);
  config.require("hidden_act", "silu");
  config.require("swiglu_alpha", 1.702);
  config.require("swiglu_limit", 7.0);
  require_known_quantization(config);
  // Of a training, and how long its texts were at first.
  config.ignore({"router_aux_loss_coef", "initial_context_length"});
}

void read_family(const ForeignObject& config, std::string_view name, Config& c) {
  if (name == "gpt2") return read_gpt2(config, c);
  if (name == "gpt_oss") return read_gpt_oss(config, c);
  if (is_gemma(name)) return read_gemma(config, name, c);
  read_llama(config, c);
  if (name == "llama") {
    c.bias = config.flag("attention_bias", false);
    if (config.flag("mlp_bias", false) != c.bias)
      config.refuse("mlp_bias", "that of attention_bias");
  } else if (name == "mistral") {
    read_windows(config, c, 0);
  } else {
    if (name == "qwen3") config.require("attention_bias", false);
    constexpr index kUsualFirst = 28;
    const index first = config.whole("max_window_layers", 0, kLargestSize, kUsualFirst);
    read_windows(config, c, config.flag("use_sliding_window", false) ? first : c.layers);
  }
}

}  // namespace

std::string_view hugging_face_name(LayerActivation activation) {
  for (const ActivationName& one : kActivations) {
    if (one.plain == activation || one.gated == activation) return one.name;
  }
  fail(ErrorCode::kInternal, "an activation without a name");
}

std::optional<LayerActivation> activation_of_name(std::string_view name, bool gated) {
  for (const ActivationName& one : kActivations) {
    if (one.name == name) return gated ? one.gated : one.plain;
  }
  return std::nullopt;
}

LayerActivation hugging_face_activation(const ForeignObject& config, std::string_view key,
                                        std::string_view usual, bool gated) {
  const std::string name = config.text(key, std::string(usual));
  if (const auto found = activation_of_name(name, gated)) return *found;
  config.refuse(key,
                gated ? "silu, gelu, gelu_pytorch_tanh and relu" : "gelu, gelu_new, silu and relu");
}

void ignore_what_says_nothing(const ForeignObject& config) {
  config.ignore({"_name_or_path",
                 "architectures",
                 "attention_dropout",
                 "attn_pdrop",
                 "auto_map",
                 "bos_token_id",
                 "decoder_start_token_id",
                 "dtype",
                 "embd_pdrop",
                 "eos_token_id",
                 "gradient_checkpointing",
                 "id2label",
                 "initializer_range",
                 "is_decoder",
                 "label2id",
                 "model_type",
                 "n_ctx",
                 "output_attentions",
                 "output_hidden_states",
                 "output_past",
                 "pretraining_tp",
                 "pad_token_id",
                 "problem_type",
                 "resid_pdrop",
                 "return_dict",
                 "summary_activation",
                 "summary_first_dropout",
                 "summary_proj_to_labels",
                 "summary_type",
                 "summary_use_proj",
                 "task_specific_params",
                 "tokenizer_class",
                 "torch_dtype",
                 "transformers_version",
                 "unk_token_id",
                 "use_cache",
                 "use_return_dict",
                 "gguf",
                 "return_dict_in_generate",
                 "transformers.js_config"});
}

Json::Object hugging_face_config(const Architecture& architecture, const Config& c) {
  Json::Object out;
  out.emplace_back("architectures", Json::Array{Json(architecture.class_name)});
  out.emplace_back("model_type", architecture.model_type);
  out.emplace_back("vocab_size", c.vocabulary);
  out.emplace_back("tie_word_embeddings", c.tie);
  if (architecture.name == "gpt2") {
    write_gpt2(c, out);
    return out;
  }
  write_llama(c, architecture.name, out);
  if (architecture.name == "gemma2" || architecture.name == "gemma3") {
    write_gemma(c, architecture.name, out);
  }
  if (architecture.name == "llama") out.emplace_back("mlp_bias", c.bias);
  if (architecture.name == "mistral") out.emplace_back("sliding_window", *seen_keys(c));
  if (architecture.name == "qwen3") write_windows(c, out);
  return out;
}

namespace {

// The part of a configuration that is a model of images and texts that is of its language model,
// and what stands beside it.
constexpr std::string_view kTextPart = "text_config";

bool has_images(const Json& config) {
  const Json* const type = config.find("model_type");
  const auto* const name = type == nullptr ? nullptr : type->get_if<std::string>();
  const Json* const text = config.find(kTextPart);
  return name != nullptr && *name == "gemma3" && text != nullptr && !text->is_null();
}

index vocabulary_of(const ForeignObject& config, std::string_view name) {
  const std::optional<index> usual =
      is_gemma(name) ? std::optional(gemma_defaults(name).vocabulary) : std::nullopt;
  return config.whole("vocab_size", 1, kLargestSize, usual);
}

HuggingFaceModel read_text_model(const ForeignObject& config, const Architecture& row) {
  Config c = row.layers();
  c.vocabulary = vocabulary_of(config, row.name);
  read_family(config, row.name, c);
  ignore_what_says_nothing(config);
  config.require("is_causal", true);
  config.ignore_what_is_off();
  config.refuse_others();
  try {
    return {row, resolve(c)};
  } catch (const Error& error) {  // sizes that do not fit together
    throw error.with(ErrorCode::kModelDamaged, fmt::format("{}: {}", config.where(), error.what()));
  }
}

}  // namespace

HuggingFaceModel read_hugging_face_config(const ForeignObject& config) {
  const Architecture& row = architecture(config.text("model_type"));
  if (row.name != "gemma3" || !config.has(kTextPart)) return read_text_model(config, row);
  const ForeignObject text = config.object(kTextPart);
  config.require("tie_word_embeddings", true);
  ignore_what_says_nothing(config);
  config.ignore({"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index",
                 "image_token_index", "boi_token_id", "eoi_token_id", "image_token_id"});
  config.ignore_what_is_off();
  config.refuse_others();
  return read_text_model(text, row);
}

Json::Object language_model_config(const Json& config) {
  if (!has_images(config)) return config.object();
  const Architecture& row = architecture("gemma3");
  constexpr std::string_view kNames[] = {"architectures", "model_type"};
  Json::Object text = members_but(config.at(kTextPart).object(), kNames);
  text.emplace_back("architectures", Json::Array{Json(row.class_name)});
  text.emplace_back("model_type", row.model_type);
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const bool has = std::ranges::any_of(text, [&](const auto& one) { return one.first == key; });
    const Json* const outside = config.find(key);
    if (!has && outside != nullptr) text.emplace_back(key, *outside);
  }
  return text;
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kConfigName = "config.json", kTokenizerName = "tokenizer.json";
constexpr std::size_t kMostTextBytes = std::size_t{1} << 20;

// The tensors of a language model stand behind these names in one that has images, too, as
// transformers 5 and older versions write it.
constexpr std::pair<std::string_view, std::string_view> kTextPrefixes[] = {
    {"model.language_model.", "model."},
    {"language_model.model.", "model."},
    {"language_model.lm_head.", "lm_head."}};

bool is_of_images(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"vision_tower.", "multi_modal_projector."};
  return std::ranges::any_of(kPrefixes, [&](std::string_view prefix) {
    return name.starts_with(prefix) || name.starts_with("model." + std::string(prefix));
  });
}

std::string as_text_model(const std::string& name) {
  for (const auto& [prefix, short_one] : kTextPrefixes) {
    if (name.starts_with(prefix)) return std::string(short_one) + name.substr(prefix.size());
  }
  return name;
}

constexpr std::string_view kMxfp4Blocks = "_blocks", kMxfp4Scales = "_scales";

// The files of a folder as one source. Models that were saved without their head lack the prefix of
// its names. Blocks of MXFP4 and their scales are one tensor, as transformers widens them.
class FolderSource : public TensorSource {
 public:
  FolderSource(const fs::path& folder, std::string_view prefix, bool images) : tensors_(folder) {
    const bool bare = std::ranges::none_of(
        tensors_.names(), [&](const std::string& name) { return name.starts_with(prefix); });
    for (const std::string& name : tensors_.names()) {
      if (name.ends_with(kMxfp4Scales) && tensors_.has(with_end(name, kMxfp4Blocks))) continue;
      stored_.push_back(name);
      if (images) {
        names_.push_back(as_text_model(name));
      } else {
        names_.push_back(bare && name != kHead ? std::string(prefix) + name : name);
      }
      if (is_mxfp4(stored_.size() - 1)) names_.back() = with_end(names_.back(), "");
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  TensorInfo info(std::size_t n) const override {
    const Shape& shape = tensors_.shape(stored_[n]);
    return {names_[n], DType::kFloat32,
            is_mxfp4(n) ? mxfp4_shape(shape, tensors_.shape(scales_of(n)), stored_[n]) : shape};
  }
  Tensor read(std::size_t n) const override {
    Tensor values = Tensor::empty(info(n).shape);
    if (is_mxfp4(n)) {
      widen_mxfp4(tensors_.bytes(stored_[n]), tensors_.bytes(scales_of(n)), values);
    } else {
      tensors_.read(stored_[n], values.vec<float>());
    }
    return values;
  }
  std::optional<BlockType> block_type(std::size_t n) const override {
    return tensors_.block_type(stored_[n]);
  }
  SharedBytes blocks(std::size_t n) const override { return tensors_.blocks(stored_[n]); }

 private:
  // "gate_up_proj_scales" of "gate_up_proj_blocks"; both ends have as many characters.
  static std::string with_end(const std::string& name, std::string_view end) {
    return name.substr(0, name.size() - kMxfp4Blocks.size()) + std::string(end);
  }
  std::string scales_of(std::size_t n) const { return with_end(stored_[n], kMxfp4Scales); }
  bool is_mxfp4(std::size_t n) const {
    return stored_[n].ends_with(kMxfp4Blocks) && tensors_.has(scales_of(n));
  }

  FolderTensors tensors_;
  std::vector<std::string> stored_, names_;
};

// Masks and frequencies that older versions of transformers stored.
bool is_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

// A tied head that is stored all the same.
bool is_buffer_or_head(std::string_view name) { return is_buffer(name) || name == kHead; }
bool is_no_text(std::string_view name) { return is_buffer_or_head(name) || is_of_images(name); }

std::optional<Json> json_if_there(const ModelFiles& files, std::string_view name) {
  if (!files.has(name)) return std::nullopt;
  return files.json(name);
}

void add_end(PretrainedText& text, std::int64_t number) {
  if (number < 0 || number >= text.subwords->size())
    return;  // of a larger table than that of the tokenizer
  const auto id = static_cast<token>(number);
  if (std::ranges::find(text.ends, id) == text.ends.end()) text.ends.push_back(id);
}

// One id, or a list.
void add_ends(PretrainedText& text, const Json* ids) {
  if (ids == nullptr) return;
  if (const auto* const one = ids->get_if<std::int64_t>()) add_end(text, *one);
  if (const auto* const list = ids->get_if<Json::Array>()) {
    for (const Json& id : *list) add_ends(text, &id);
  }
}

// A token by its name, or by an object that has it.
token named_token(const Subwords& subwords, const Json* name) {
  if (name == nullptr) return kNoToken;
  if (const auto* const text = name->get_if<std::string>()) return subwords.id_of(*text);
  return name->get_if<Json::Object>() != nullptr ? named_token(subwords, name->find("content"))
                                                 : kNoToken;
}

std::string chat_template(const ModelFiles& files, const Json* settings) {
  constexpr std::string_view kName = "chat_template.jinja";
  if (files.has(kName)) return files.text(kName, kMostTextBytes);
  const Json* const found = settings == nullptr ? nullptr : settings->find("chat_template");
  const auto* const text = found == nullptr ? nullptr : found->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

PretrainedText read_text(const ModelFiles& files, const Json& whole) {
  const Json config = language_model_config(whole);
  const ForeignObject sizes(config, files.path(kConfigName));
  const std::string type = sizes.text("model_type");
  const std::string name(is_architecture(type) ? architecture(type).name : type);
  const index rows = vocabulary_of(sizes, name);
  // The mark that an empty text begins with, whether or not others do.
  const index begin = sizes.whole("bos_token_id", -1, kLargestSize, -1);
  FolderSubwords read =
      read_folder_subwords(files, name, rows, begin < rows ? static_cast<token>(begin) : kNoToken);
  if (read.marks.before.size() > 1 || !read.marks.after.empty()) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: the tokenizer puts marks behind each text, or several before it",
                            files.path(kTokenizerName)),
                kReadableHint);
  }
  PretrainedText text{.architecture = name, .subwords = std::move(read.subwords)};
  if (!read.marks.before.empty()) text.begin = read.marks.before.front();
  const auto settings = json_if_there(files, "tokenizer_config.json");
  const auto generation = json_if_there(files, "generation_config.json");
  if (generation) add_ends(text, generation->find("eos_token_id"));
  for (const Json* const one : {&whole, &config}) add_ends(text, one->find("eos_token_id"));
  if (settings) text.end = named_token(*text.subwords, settings->find("eos_token"));
  if (text.end != kNoToken) add_end(text, text.end);
  if (text.end == kNoToken && !text.ends.empty()) text.end = text.ends.front();
  text.chat_template = chat_template(files, settings ? &*settings : nullptr);
  return text;
}

}  // namespace

bool is_hugging_face(const fs::path& folder) {
  const fs::path file = folder / kConfigName;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return false;
  // Models of fovea have no such file: what is wrong with the configuration is then said.
  if (fs::exists(folder / "tokenizer.json", ignored)) return true;
  try {
    return read_foreign_json(file).find("model_type") != nullptr;
  } catch (const Error&) {
    return fs::exists(folder / "source.spm", ignored);  // of a translator, and none of ours
  }
}

PretrainedText text_of_files(const ModelFiles& files) {
  return read_text(files, files.json(kConfigName));
}

LanguageModelConfig config_of_files(const ModelFiles& files) {
  const Json json = files.json(kConfigName);
  return read_hugging_face_config(ForeignObject(json, files.path(kConfigName))).config;
}

PretrainedText load_hugging_face_text(const fs::path& folder) {
  return text_of_files(ModelFiles(folder));
}

PretrainedLanguageModel load_hugging_face(const fs::path& folder,
                                          const PretrainedOptions& options) {
  const ModelFiles files(folder);
  const Json json = files.json(kConfigName);
  HuggingFaceModel model = read_hugging_face_config(ForeignObject(json, files.path(kConfigName)));
  PretrainedLanguageModel loaded{
      .config = model.config, .text = read_text(files, json), .model = nullptr};
  const bool images = has_images(json);
  const FolderSource tensors(folder, model.architecture.name == "gpt2" ? "transformer." : "model.",
                             images);
  const auto ignores = images ? is_no_text : model.config.tie ? is_buffer_or_head : is_buffer;
  detail::named(folder.string(), [&] {
    detail::make_model(loaded, {model.architecture, ModelForm::kHuggingFace, tensors, ignores},
                       options);
  });
  return loaded;
}

}  // namespace fovea
