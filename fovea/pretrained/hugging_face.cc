// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/words.h"

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
    {"gelu_pytorch_tanh", LayerActivation::kGeluTanh, std::nullopt},
    {"gelu_new", LayerActivation::kGeluTanh, std::nullopt},
    {"gelu_fast", LayerActivation::kGeluTanh, std::nullopt},
    {"silu", LayerActivation::kSilu, LayerActivation::kSwiglu},
    {"swish", LayerActivation::kSilu, LayerActivation::kSwiglu},
    {"relu", LayerActivation::kRelu, LayerActivation::kReglu},
};

std::string_view name_of(LayerActivation activation) {
  for (const ActivationName& one : kActivations) {
    if (one.plain == activation || one.gated == activation) return one.name;
  }
  fail(ErrorCode::kInternal, "an activation without a name");
}

// ------------------------------------------------------------------------------------------
// written

void write_gpt2(const Config& c, Json::Object& out) {
  for (const auto& [key, value] : {std::pair{"n_embd", c.width},
                                   {"n_layer", c.layers},
                                   {"n_head", c.heads},
                                   {"n_positions", c.position_max},
                                   {"n_inner", c.ff}}) {
    out.emplace_back(key, value);
  }
  out.emplace_back("activation_function", name_of(c.activation));
  out.emplace_back("layer_norm_epsilon", c.norm_epsilon);
  for (const char* key : {"resid_pdrop", "embd_pdrop", "attn_pdrop"}) {
    out.emplace_back(key, c.dropout);
  }
}

// What Llama, Mistral and Qwen3 share.
void write_llama(const Config& c, Json::Object& out) {
  for (const auto& [key, value] : {std::pair{"hidden_size", c.width},
                                   {"intermediate_size", c.ff},
                                   {"num_hidden_layers", c.layers},
                                   {"num_attention_heads", c.heads},
                                   {"num_key_value_heads", c.kv_heads},
                                   {"head_dim", c.head_dim},
                                   {"max_position_embeddings", c.block}}) {
    out.emplace_back(key, value);
  }
  out.emplace_back("hidden_act", name_of(c.activation));
  out.emplace_back("rms_norm_eps", c.norm_epsilon);
  // Where transformers 5 reads the base, and where older versions and other programs do.
  out.emplace_back("rope_parameters",
                   Json::Object{{"rope_type", "default"}, {"rope_theta", c.rope_base}});
  out.emplace_back("rope_theta", c.rope_base);
  out.emplace_back("attention_bias", c.bias);
  out.emplace_back("attention_dropout", c.dropout);
}

void write_windows(const Config& c, Json::Object& out) {
  const auto seen = seen_keys(c);
  Json::Array types;
  for (const index window : layer_windows(c)) {
    types.emplace_back(window > 0 ? "sliding_attention" : "full_attention");
  }
  out.emplace_back("layer_types", std::move(types));
  out.emplace_back("use_sliding_window", seen.has_value());
  out.emplace_back("sliding_window", seen ? Json(*seen) : Json());
}

// ------------------------------------------------------------------------------------------- read

[[noreturn]] void unknown(std::string_view key, const Json& value) {
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("{} = {}: fovea does not know what that changes", printable(key),
                          printable(value.line())),
              "docs/models.md lists what can be read");
}

// A value of another type is an error of the file, which names the key.
template <class Read>
auto typed(std::string_view key, Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    fail(ErrorCode::kModelDamaged, "{}: {}", key, error.what());
  }
}

// The keys of a config.json, each of which is read once.
class ConfigKeys {
 public:
  explicit ConfigKeys(const Json& config) : config_(config) {}

  // null counts as missing.
  const Json* find(std::string_view key) {
    read_.insert(std::string(key));
    const Json* const value = config_.find(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  index size(std::string_view key) {
    const Json* const value = find(key);
    if (value == nullptr) fail(ErrorCode::kModelDamaged, "{} is missing", key);
    return in_range(key, *value);
  }
  index size(std::string_view key, index usual) {
    const Json* const value = find(key);
    return value == nullptr ? usual : in_range(key, *value);
  }
  double number(std::string_view key, double usual) {
    const Json* const value = find(key);
    if (value == nullptr) return usual;
    const double number = typed(key, [&] { return value->number(); });
    if (std::isfinite(number) && number > 0) return number;
    fail(ErrorCode::kModelDamaged, "{}: expected a number over 0, got {}", key, number);
  }
  bool flag(std::string_view key, bool usual) {
    const Json* const value = find(key);
    return value == nullptr ? usual : typed(key, [&] { return value->boolean(); });
  }
  std::string text(std::string_view key, std::string_view usual) {
    const Json* const value = find(key);
    return value == nullptr ? std::string(usual) : typed(key, [&] { return value->text(); });
  }
  // Only this value is known.
  void only(std::string_view key, bool value) {
    if (flag(key, value) != value) unknown(key, config_.at(key));
  }

  LayerActivation activation(std::string_view key, std::string_view usual, bool gated) {
    const std::string name = text(key, usual);
    for (const ActivationName& one : kActivations) {
      const auto found = gated ? one.gated : one.plain;
      if (one.name == name && found) return *found;
    }
    unknown(key, Json(name));
  }

  /// Refuses keys that nothing has read, but those that say nothing about what is computed.
  void refuse_others() const;

 private:
  static index in_range(std::string_view key, const Json& value) {
    const index size = typed(key, [&] { return value.whole(); });
    if (size >= 1 && size <= kLargestSize) return size;
    fail(ErrorCode::kModelDamaged, "{}: expected 1 to {}, got {}", key, kLargestSize, size);
  }

  const Json& config_;
  std::set<std::string, std::less<>> read_;
};

// Of training, of generation, of the program that wrote the file; or of heads that are not here.
constexpr std::string_view kSayNothing[] = {"_name_or_path",
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
                                            "max_window_layers",
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
                                            "transformers.js_config"};

// Counts and switches that are off.
bool is_off(const Json& value) {
  if (value.is_null()) return true;
  const std::string shown = value.line();
  return shown == "false" || shown == "0" || shown == "0.0" || shown == "\"\"" || shown == "[]" ||
         shown == "{}";
}

void ConfigKeys::refuse_others() const {
  for (const auto& [key, value] : config_.object()) {
    if (read_.contains(key) || std::ranges::count(kSayNothing, key) > 0 || is_off(value)) continue;
    unknown(key, value);
  }
}

// The base of rotary positions. Scaled ones are not known yet.
double rope_base(ConfigKeys& keys) {
  constexpr double kUsual = 10000;
  double base = keys.number("rope_theta", kUsual);
  for (const std::string_view name : {"rope_parameters", "rope_scaling"}) {
    const Json* const rules = keys.find(name);
    if (rules == nullptr) continue;
    ConfigKeys inner(*rules);
    const std::string type = inner.text("rope_type", inner.text("type", "default"));
    if (type != "default") unknown(name, *rules);
    base = inner.number("rope_theta", base);
    inner.refuse_others();
  }
  return base;
}

void read_gpt2(ConfigKeys& keys, Config& c) {
  c.width = keys.size("n_embd");
  c.layers = keys.size("n_layer");
  c.heads = keys.size("n_head");
  c.block = c.position_max = keys.size("n_positions");
  c.ff = keys.size("n_inner", 4 * c.width);
  c.activation = keys.activation("activation_function", "gelu_new", false);
  c.norm_epsilon = keys.number("layer_norm_epsilon", 1e-5);
  keys.only("scale_attn_weights", true);
  keys.only("scale_attn_by_inverse_layer_idx", false);
  keys.only("add_cross_attention", false);
  keys.flag("reorder_and_upcast_attn", false);  // how it rounds
  c.tie = keys.flag("tie_word_embeddings", true);
  c.bias = true;
}

void read_llama(ConfigKeys& keys, Config& c) {
  c.width = keys.size("hidden_size");
  c.ff = keys.size("intermediate_size");
  c.layers = keys.size("num_hidden_layers");
  c.heads = keys.size("num_attention_heads");
  c.kv_heads = keys.size("num_key_value_heads", c.heads);
  c.head_dim = keys.size("head_dim", std::max<index>(1, c.width / c.heads));
  c.block = keys.size("max_position_embeddings", 2048);
  c.activation = keys.activation("hidden_act", "silu", true);
  c.norm_epsilon = keys.number("rms_norm_eps", 1e-6);
  c.rope_base = rope_base(keys);
  c.position = PositionKind::kRotary;
  c.norm = NormKind::kRms;
  c.tie = keys.flag("tie_word_embeddings", false);
}

// The window of each layer: of all, or of those that the list of kinds names.
void read_windows(ConfigKeys& keys, Config& c, bool used) {
  const index seen = keys.size("sliding_window", 0);
  const Json* const types = keys.find("layer_types");
  std::vector<std::string> windows;
  for (index n = 0; n < c.layers; ++n) {
    bool narrow = used && seen > 0;
    if (types != nullptr) {
      const Json::Array& list = types->array();
      if (std::ssize(list) != c.layers) {
        fail(ErrorCode::kModelDamaged, "layer_types has {} entries for {} layers", list.size(),
             c.layers);
      }
      const std::string& type = list[static_cast<std::size_t>(n)].text();
      if (type != "sliding_attention" && type != "full_attention")
        unknown("layer_types", Json(type));
      narrow = type == "sliding_attention";
      if (narrow && seen == 0)
        fail(ErrorCode::kModelDamaged, "layer_types asks for sliding_window, which is missing");
    }
    windows.push_back(narrow ? std::to_string(seen - 1) : "0");
    if (narrow && seen == 1) unknown("sliding_window", Json(seen));
  }
  if (std::ranges::count(windows, "0") < c.layers)
    c.window = fmt::format("{}", fmt::join(windows, ","));
}

void read_family(ConfigKeys& keys, std::string_view name, Config& c) {
  if (name == "gpt2") return read_gpt2(keys, c);
  read_llama(keys, c);
  if (name == "llama") {
    const bool heads = keys.flag("attention_bias", false), network = keys.flag("mlp_bias", false);
    if (heads != network) unknown(heads ? "attention_bias" : "mlp_bias", Json(true));
    c.bias = heads;
  } else if (name == "mistral") {
    read_windows(keys, c, true);
  } else {
    c.qk_norm = name == "qwen3";
    c.bias = name == "qwen2";
    keys.only("attention_bias", c.bias);
    read_windows(keys, c, keys.flag("use_sliding_window", false));
  }
}

}  // namespace

Json::Object hugging_face_config(const Architecture& architecture, const Config& c) {
  Json::Object out;
  out.emplace_back("architectures", Json::Array{Json(architecture.class_name)});
  out.emplace_back("model_type", architecture.name);
  out.emplace_back("vocab_size", c.vocabulary);
  out.emplace_back("tie_word_embeddings", c.tie);
  if (architecture.name == "gpt2") {
    write_gpt2(c, out);
    return out;
  }
  write_llama(c, out);
  if (architecture.name == "llama") out.emplace_back("mlp_bias", c.bias);
  if (architecture.name == "mistral") out.emplace_back("sliding_window", *seen_keys(c));
  if (architecture.name == "qwen3") write_windows(c, out);
  return out;
}

HuggingFaceModel read_hugging_face_config(const Json& config, const std::string& where) {
  try {
    ConfigKeys keys(config);
    const Architecture& row = architecture(keys.text("model_type", ""));
    Config c;
    c.kind = LanguageModelKind::kTransformer;
    c.norm_position = NormPosition::kPre;
    c.embedding_scale = 1;
    c.vocabulary = keys.size("vocab_size");
    read_family(keys, row.name, c);
    keys.refuse_others();
    return {row, resolve(c)};
  } catch (const Error& error) {
    throw error.with(error.code() == ErrorCode::kConfig ? ErrorCode::kModelDamaged : error.code(),
                     fmt::format("{}: {}", where, error.what()));
  }
}

}  // namespace fovea
