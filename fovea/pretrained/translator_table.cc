// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/translator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/pretrained/hugging_face.h"

namespace fovea {

namespace {

constexpr EncoderTensor kMarianEncoder[] = {
    {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.out", {"self_attn.out_proj"}},
    {"attention_norm", {"self_attn_layer_norm"}},
    {"feed_forward.in", {"fc1"}},
    {"feed_forward.out", {"fc2"}},
    {"feed_forward_norm", {"final_layer_norm"}},
};

constexpr EncoderTensor kMarianDecoder[] = {
    {"attention.qkv", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
    {"attention.out", {"self_attn.out_proj"}},
    {"attention_norm", {"self_attn_layer_norm"}},
    {"cross.q", {"encoder_attn.q_proj"}},
    {"cross.kv", {"encoder_attn.k_proj", "encoder_attn.v_proj"}},
    {"cross.out", {"encoder_attn.out_proj"}},
    {"cross_norm", {"encoder_attn_layer_norm"}},
    {"feed_forward.in", {"fc1"}},
    {"feed_forward.out", {"fc2"}},
    {"feed_forward_norm", {"final_layer_norm"}},
};

// The first layer of each side has the biases that all layers of the side share.
constexpr EncoderTensor kT5[] = {
    {"encoder.distances", {"encoder.block.0.layer.0.SelfAttention.relative_attention_bias"}},
    {"encoder.norm", {"encoder.final_layer_norm"}},
    {"decoder.distances", {"decoder.block.0.layer.0.SelfAttention.relative_attention_bias"}},
    {"decoder.norm", {"decoder.final_layer_norm"}},
};

constexpr EncoderTensor kT5Encoder[] = {
    {"attention.qkv",
     {"layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v"}},
    {"attention.out", {"layer.0.SelfAttention.o"}},
    {"attention_norm", {"layer.0.layer_norm"}},
    {"feed_forward.in", {"layer.1.DenseReluDense.wi"}},
    {"feed_forward.gate", {"layer.1.DenseReluDense.wi_0"}},
    {"feed_forward.gated", {"layer.1.DenseReluDense.wi_1"}},
    {"feed_forward.out", {"layer.1.DenseReluDense.wo"}},
    {"feed_forward_norm", {"layer.1.layer_norm"}},
};

constexpr EncoderTensor kT5Decoder[] = {
    {"attention.qkv",
     {"layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v"}},
    {"attention.out", {"layer.0.SelfAttention.o"}},
    {"attention_norm", {"layer.0.layer_norm"}},
    {"cross.q", {"layer.1.EncDecAttention.q"}},
    {"cross.kv", {"layer.1.EncDecAttention.k", "layer.1.EncDecAttention.v"}},
    {"cross.out", {"layer.1.EncDecAttention.o"}},
    {"cross_norm", {"layer.1.layer_norm"}},
    {"feed_forward.in", {"layer.2.DenseReluDense.wi"}},
    {"feed_forward.gate", {"layer.2.DenseReluDense.wi_0"}},
    {"feed_forward.gated", {"layer.2.DenseReluDense.wi_1"}},
    {"feed_forward.out", {"layer.2.DenseReluDense.wo"}},
    {"feed_forward_norm", {"layer.2.layer_norm"}},
};

constexpr index kMostForeignWidth = index{1} << 20;
// Positions are computed where a file has none, so no file bounds their number.
constexpr index kMostPositions = index{1} << 20;
// The encoder has half of them for each direction, of which half are for one distance each.
constexpr index kLeastBuckets = 4, kMostBuckets = index{1} << 16;

index size_of(const ForeignObject& config, std::string_view key, index most, index usual) {
  return config.whole(key, 1, most, usual);
}

// Sizes that both sides have, and ours have once.
index same_on_both_sides(const ForeignObject& config, std::string_view key, index usual) {
  const std::string of_encoder = fmt::format("encoder_{}", key),
                    of_decoder = fmt::format("decoder_{}", key);
  const index size = size_of(config, of_encoder, kMostForeignWidth, usual);
  if (size_of(config, of_decoder, kMostForeignWidth, usual) != size) {
    config.refuse(of_decoder, fmt::format("that of {}, {}", of_encoder, size));
  }
  return size;
}

// Other names of a size, which transformers takes for the same.
void require_equal(const ForeignObject& config, std::string_view key, index size) {
  if (config.whole(key, 0, kLargestSize, size) != size) {
    config.refuse(key, fmt::format("{} here", size));
  }
}

// How the layers are made; Marian has one way.
void require_layers_of_marian(const ForeignObject& config) {
  for (const char* const key :
       {"normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits",
        "do_blenderbot_90_layernorm", "is_decoder", "add_cross_attention"}) {
    config.require(key, false);
  }
  config.require("static_position_embeddings", true);
  config.require("quantization_config", Json());
}

// What training drops, and what generation_config.json says now.
void ignore_what_trains_or_generates(const ForeignObject& config) {
  config.ignore({"_num_labels",
                 "activation_dropout",
                 "bad_words_ids",
                 "begin_suppress_tokens",
                 "classif_dropout",
                 "classifier_dropout",
                 "decoder_layerdrop",
                 "do_sample",
                 "dropout",
                 "early_stopping",
                 "encoder_layerdrop",
                 "extra_pos_embeddings",
                 "forced_bos_token_id",
                 "forced_eos_token_id",
                 "init_std",
                 "length_penalty",
                 "max_length",
                 "min_length",
                 "num_beams",
                 "num_labels",
                 "prefix",
                 "renormalize_logits",
                 "suppress_tokens",
                 "temperature",
                 "tokenizer_class",
                 "top_k",
                 "top_p"});
}

void read_marian(const ForeignObject& config, TranslatorConfig& c) {
  c.vocabulary = size_of(config, "vocab_size", kLargestSize, 58101);
  c.target_vocabulary = size_of(config, "decoder_vocab_size", kLargestSize, c.vocabulary);
  c.width = size_of(config, "d_model", kMostForeignWidth, 1024);
  c.encoder_layers = size_of(config, "encoder_layers", kMostLayers, 12);
  c.decoder_layers = size_of(config, "decoder_layers", kMostLayers, 12);
  c.heads = same_on_both_sides(config, "attention_heads", 16);
  c.ff = same_on_both_sides(config, "ffn_dim", 4096);
  require_equal(config, "num_hidden_layers", c.encoder_layers);
  require_equal(config, "num_attention_heads", c.heads);
  require_equal(config, "hidden_size", c.width);
  c.block = config.whole("max_position_embeddings", 2, kMostPositions, 1024);
  c.activation = hugging_face_activation(config, "activation_function", "gelu", false);
  c.share_embeddings = config.flag("share_encoder_decoder_embeddings", true);
  c.tie = config.flag("tie_word_embeddings", true);
  if (c.share_embeddings && !c.tie) {
    config.refuse("tie_word_embeddings", "true with share_encoder_decoder_embeddings");
  }
  if (c.share_embeddings && c.target_vocabulary != c.vocabulary) {
    config.refuse(
        "decoder_vocab_size",
        fmt::format("that of vocab_size, {}, with share_encoder_decoder_embeddings", c.vocabulary));
  }
  c.bias = true;
  c.norm_position = NormPosition::kPost;
  c.position = PositionKind::kSinusoidal;
  c.sinusoid = SinusoidOrder::kSinCos;
  c.embedding_scale =
      config.flag("scale_embedding", false) ? std::sqrt(static_cast<double>(c.width)) : 1;
  require_layers_of_marian(config);
}

// What transformers reads of it: "relu", "gated-gelu"; the GELU behind a gate is that by tanh.
LayerActivation t5_activation(const ForeignObject& config, std::string_view usual) {
  constexpr std::string_view kKey = "feed_forward_proj", kGated = "gated-";
  const std::string said = config.text(kKey, std::string(usual));
  if (said == "gated-gelu") return LayerActivation::kGegluTanh;
  const bool gated = said.starts_with(kGated);
  const std::string_view name = std::string_view(said).substr(gated ? kGated.size() : 0);
  if (const auto found = activation_of_name(name, gated)) return *found;
  config.refuse(kKey, "relu, gelu, gelu_new and silu, alone or behind \"gated-\"");
}

// What transformers takes where a file says nothing.
struct T5Usual {
  std::string_view activation;
  index vocabulary, ff, layers, heads;
};

// Positions are distances, so nothing bounds the length of a text.
void read_t5_family(const ForeignObject& config, TranslatorConfig& c, const T5Usual& usual) {
  c.vocabulary = size_of(config, "vocab_size", kLargestSize, usual.vocabulary);
  c.target_vocabulary = c.vocabulary;
  c.width = size_of(config, "d_model", kMostForeignWidth, 512);
  c.head_dim = size_of(config, "d_kv", kMostForeignWidth, 64);
  c.ff = size_of(config, "d_ff", kMostForeignWidth, usual.ff);
  c.encoder_layers = size_of(config, "num_layers", kMostLayers, usual.layers);
  c.decoder_layers = size_of(config, "num_decoder_layers", kMostLayers, c.encoder_layers);
  c.heads = size_of(config, "num_heads", kMostForeignWidth, usual.heads);
  c.activation = t5_activation(config, usual.activation);
  constexpr std::string_view kBuckets = "relative_attention_num_buckets",
                             kFarthest = "relative_attention_max_distance";
  c.t5_buckets = config.whole(kBuckets, kLeastBuckets, kMostBuckets, 32);
  c.t5_max_distance = size_of(config, kFarthest, kLargestSize, 128);
  if (c.t5_max_distance <= c.t5_buckets / 2) {
    config.fail_value(kFarthest, fmt::format("more than half of {}, {}", kBuckets, c.t5_buckets));
  }
  c.norm_epsilon = config.number("layer_norm_epsilon", 0, 1, 1e-6);
  c.block = kMostPositions;
  c.norm = NormKind::kRms;
  c.norm_position = NormPosition::kPre;
  c.position = *find_enum<PositionKind>("t5");
  c.shares_distances = true;
  c.score_scale = 1;
  c.bias = false;
  c.share_embeddings = true;
  require_equal(config, "num_hidden_layers", c.encoder_layers);
  require_equal(config, "num_attention_heads", c.heads);
  require_equal(config, "hidden_size", c.width);
  require_equal(config, "head_dim", c.head_dim);
  config.require("is_decoder", false);
  config.require("quantization_config", Json());
  // The first two follow from feed_forward_proj, the third is how long texts of its training were.
  config.ignore(
      {"dense_act_fn", "is_gated_act", "n_positions", "dropout_rate", "initializer_factor"});
}

void read_t5(const ForeignObject& config, TranslatorConfig& c) {
  read_t5_family(config, c,
                 {.activation = "relu", .vocabulary = 32128, .ff = 2048, .layers = 6, .heads = 8});
  // By this transformers tells T5 1.1 from the first T5, whatever is tied.
  const bool scales =
      config.flag("scale_decoder_outputs", config.flag("tie_word_embeddings", true));
  if (scales) c.output_scale = 1 / std::sqrt(static_cast<double>(c.width));
}

void read_mt5(const ForeignObject& config, TranslatorConfig& c) {
  read_t5_family(
      config, c,
      {.activation = "gated-gelu", .vocabulary = 250112, .ff = 1024, .layers = 8, .heads = 6});
  config.ignore({"tie_word_embeddings"});
}

constexpr TranslatorArchitecture kMarian = {
    .name = "marian",
    .class_name = "MarianMTModel",
    .read = read_marian,
    .shared = "model.shared",
    .of_source = "model.encoder.embed_tokens",
    .of_target = "model.decoder.embed_tokens",
    .head = "lm_head",
    .logits_bias = "final_logits_bias",
    .encoder_layer = "model.encoder.layers.",
    .decoder_layer = "model.decoder.layers.",
    .in_encoder = kMarianEncoder,
    .in_decoder = kMarianDecoder,
    .least_tensors = 16,
    .source_positions = "model.encoder.embed_positions.weight",
    .target_positions = "model.decoder.embed_positions.weight",
    .marks = {.padding = 58100, .end = 0, .begin = 58100},
};

constexpr TranslatorArchitecture t5(std::string_view name, std::string_view class_name,
                                    void (*read)(const ForeignObject&, TranslatorConfig&)) {
  return {.name = name,
          .class_name = class_name,
          .read = read,
          .shared = "shared",
          .of_source = "encoder.embed_tokens",
          .of_target = "decoder.embed_tokens",
          .head = "lm_head",
          .head_rule = HeadRule::kByFile,
          .of_model = kT5,
          .encoder_layer = "encoder.block.",
          .decoder_layer = "decoder.block.",
          .in_encoder = kT5Encoder,
          .in_decoder = kT5Decoder,
          .least_tensors = 8,
          .unread = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
          .marks = {.padding = 0, .end = 1, .begin = 0},
          .writes_padding = true,
          .one_vocabulary = true};
}

constexpr TranslatorArchitecture kTranslators[] = {
    kMarian,
    t5("t5", "T5ForConditionalGeneration", read_t5),
    t5("mt5", "MT5ForConditionalGeneration", read_mt5),
};

const EncoderTensor* find_row(std::span<const EncoderTensor> rows, std::string_view ours) {
  const auto row = std::ranges::find(rows, ours, &EncoderTensor::ours);
  return row == rows.end() ? nullptr : &*row;
}

std::string weight_of(std::string_view name) { return fmt::format("{}.weight", name); }

}  // namespace

bool is_translator_architecture(std::string_view name) {
  return std::ranges::find(kTranslators, name, &TranslatorArchitecture::name) !=
         std::end(kTranslators);
}

const TranslatorArchitecture& translator_architecture(const ForeignObject& config) {
  const std::string name = config.text("model_type", "");
  std::string known;
  for (const TranslatorArchitecture& row : kTranslators) {
    if (row.name == name) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  config.refuse("model_type", known + " here");
}

bool is_source_encoder(const ForeignObject& config) {
  constexpr std::string_view kKey = "architectures";
  if (!is_translator_architecture(config.text("model_type", "")) || !config.has(kKey)) return false;
  const Json::Array& names = config.array(kKey);
  return std::ranges::any_of(names, [](const Json& name) {
    const auto* const text = name.get_if<std::string>();
    return text != nullptr && text->ends_with("EncoderModel");
  });
}

TranslatorConfig foreign_translator_config(const ForeignObject& config, TranslatorPart part) {
  TranslatorConfig c;
  c.dropout = 0;
  translator_architecture(config).read(config, c);
  if (part == TranslatorPart::kWhole) {
    config.require("is_encoder_decoder", true);
  } else {
    config.ignore({"is_encoder_decoder"});
  }
  ignore_what_says_nothing(config);
  ignore_what_trains_or_generates(config);
  config.ignore_what_is_off();
  config.refuse_others();
  try {
    return resolve(c);
  } catch (const Error& error) {  // sizes that do not fit together
    throw error.with(ErrorCode::kModelDamaged, fmt::format("{}: {}", config.where(), error.what()));
  }
}

std::vector<std::string> translator_tensors(const TranslatorArchitecture& architecture,
                                            const TranslatorConfig& config, std::string_view ours) {
  const TranslatorArchitecture& a = architecture;
  if (ours == "encoder.embedding.tokens") {
    return {weight_of(config.share_embeddings ? a.shared : a.of_source)};
  }
  if (ours == "decoder.embedding.tokens") return {weight_of(a.of_target)};
  if (ours == "output.weight") return {weight_of(a.head)};
  if (ours == "output.bias") return {std::string(a.logits_bias)};
  if (const auto* const row = find_row(a.of_model, ours.substr(0, ours.rfind('.')))) {
    return {weight_of(row->theirs[0])};
  }
  constexpr std::string_view kEncoder = "encoder.blocks.", kDecoder = "decoder.blocks.";
  const bool in_encoder = ours.starts_with(kEncoder);
  if (!in_encoder && !ours.starts_with(kDecoder)) {
    fail(ErrorCode::kInternal, "translator: no tensor is called {}", ours);
  }
  std::string_view rest = ours.substr(kEncoder.size());
  const std::string_view number = rest.substr(0, rest.find('.'));
  rest.remove_prefix(number.size() + 1);
  const std::string_view part = rest.substr(rest.rfind('.'));
  rest.remove_suffix(part.size());
  if (is_gated(config.activation) && rest == "feed_forward.in") rest = "feed_forward.gated";
  const EncoderTensor* const row = find_row(in_encoder ? a.in_encoder : a.in_decoder, rest);
  if (row == nullptr) fail(ErrorCode::kInternal, "translator: no tensor is called {}", ours);
  std::vector<std::string> names;
  for (const std::string_view name : row->theirs) {
    if (name.empty()) continue;
    names.push_back(fmt::format("{}{}.{}{}", in_encoder ? a.encoder_layer : a.decoder_layer, number,
                                name, part));
  }
  return names;
}

std::vector<std::string> other_names_of_table(const TranslatorArchitecture& architecture,
                                              const TranslatorConfig& config,
                                              std::string_view ours) {
  const TranslatorArchitecture& a = architecture;
  if (ours == "encoder.embedding.tokens" && config.share_embeddings) {
    std::vector<std::string> names = {weight_of(a.of_source), weight_of(a.of_target)};
    if (config.tie) names.push_back(weight_of(a.head));
    return names;
  }
  if (ours == "decoder.embedding.tokens" && config.tie) return {weight_of(a.head)};
  return {};
}

namespace {

// A number that changes what is written unless it has this value.
void require_number(const ForeignObject& said, std::string_view key, double only) {
  if (said.number(key, -1e9, 1e9, only) != only) said.refuse(key, fmt::format("{}", only));
}

// Searches that fovea does not have.
void refuse_other_searches(const ForeignObject& said) {
  for (const auto& [key, only] : {std::pair{"no_repeat_ngram_size", 0.0},
                                  {"encoder_no_repeat_ngram_size", 0.0},
                                  {"repetition_penalty", 1.0},
                                  {"encoder_repetition_penalty", 1.0},
                                  {"min_length", 0.0},
                                  {"min_new_tokens", 0.0},
                                  {"num_beam_groups", 1.0},
                                  {"diversity_penalty", 0.0}}) {
    require_number(said, key, only);
  }
  for (const char* const key :
       {"forced_bos_token_id", "suppress_tokens", "begin_suppress_tokens", "force_words_ids",
        "constraints", "sequence_bias", "exponential_decay_length_penalty", "guidance_scale",
        "penalty_alpha", "forced_decoder_ids"}) {
    if (said.has(key)) said.refuse(key, "models without it");
  }
  said.require("do_sample", false);
}

EarlyStop early_stop_of(const ForeignObject& said) {
  constexpr std::string_view kKey = "early_stopping";
  const Json* const value = said.find(kKey);
  if (value == nullptr) return EarlyStop::kNo;
  if (const auto* const flag = value->get_if<bool>()) {
    return *flag ? EarlyStop::kYes : EarlyStop::kNo;
  }
  const auto* const text = value->get_if<std::string>();
  if (text == nullptr || *text != "never") said.refuse(kKey, "true, false and \"never\"");
  return EarlyStop::kNever;
}

std::vector<token> banned_tokens(const ForeignObject& said, index tokens) {
  constexpr std::string_view kKey = "bad_words_ids";
  std::vector<token> banned;
  if (!said.has(kKey)) return banned;
  for (const Json& word : said.array(kKey)) {
    const auto* const ids = word.get_if<Json::Array>();
    if (ids == nullptr || ids->empty()) said.fail_value(kKey, "a list of lists of ids");
    if (ids->size() > 1) said.refuse(kKey, "words of one token");
    const auto* const id = ids->front().get_if<std::int64_t>();
    if (id == nullptr || *id < 0 || *id >= tokens) {
      said.fail_value(kKey, fmt::format("ids from 0 to {}", tokens - 1));
    }
    banned.push_back(static_cast<token>(*id));
  }
  return banned;
}

// One id or several, each of which ends a translation. Without a value that of transformers, if the
// model has such a token.
std::vector<token> end_tokens(const ForeignObject& from, std::optional<index> usual, index tokens) {
  constexpr std::string_view kKey = "eos_token_id";
  const Json* const value = from.find(kKey);
  const bool is_list = value != nullptr && value->get_if<Json::Array>() != nullptr;
  if (!is_list) return {static_cast<token>(from.whole(kKey, 0, tokens - 1, usual))};
  std::vector<token> ends;
  for (const Json& one : from.array(kKey)) {
    const auto* const id = one.get_if<std::int64_t>();
    if (id == nullptr || *id < 0 || *id >= tokens) {
      from.fail_value(kKey, fmt::format("ids from 0 to {}", tokens - 1));
    }
    const auto end = static_cast<token>(*id);
    if (std::ranges::find(ends, end) == ends.end()) ends.push_back(end);
  }
  if (ends.empty()) from.fail_value(kKey, "one id or more");
  return ends;
}

}  // namespace

TranslationRules translation_rules(const TranslatorArchitecture& architecture,
                                   const ForeignObject& said, const ForeignObject& config,
                                   index tokens) {
  // Without a value that of transformers, if the model has such a token.
  const auto mark = [&](std::string_view key, std::optional<index> usual) {
    const ForeignObject& from = said.has(key) ? said : config;
    if (usual >= tokens) usual.reset();
    return static_cast<token>(from.whole(key, 0, tokens - 1, usual));
  };
  constexpr index kMostBeams = 1024;
  const TranslatorArchitecture::Marks& usual = architecture.marks;
  const std::optional<index> usual_end =
      usual.end < tokens ? std::optional<index>(usual.end) : std::nullopt;
  TranslationRules rules{
      .begin = mark("decoder_start_token_id", usual.begin),
      .ends = end_tokens(said.has("eos_token_id") ? said : config, usual_end, tokens),
      .banned = banned_tokens(said, tokens)};
  rules.end = rules.ends.front();
  const token padding = mark("pad_token_id", usual.padding);
  if (!architecture.writes_padding) rules.banned.push_back(padding);
  rules.beams = said.whole("num_beams", 1, kMostBeams, 1);
  rules.length_penalty = said.number("length_penalty", -100, 100, 1);
  rules.early_stop = early_stop_of(said);
  rules.renormalizes = said.flag("renormalize_logits", false);
  // The mark of the beginning counts in max_length.
  rules.most_tokens = said.has("max_new_tokens") ? said.whole("max_new_tokens", 1, kLargestSize)
                                                 : said.whole("max_length", 2, kLargestSize, 1) - 1;
  constexpr std::string_view kForced = "forced_eos_token_id";
  rules.forced_end = said.has(kForced);
  if (rules.forced_end && said.whole(kForced, 0, tokens - 1) != rules.end) {
    said.refuse(kForced, "that of eos_token_id");
  }
  if (rules.forced_end && rules.ends.size() > 1) {
    said.refuse(kForced, "models without it where eos_token_id has several ids");
  }
  if (std::ranges::find_first_of(rules.banned, rules.ends) != rules.banned.end()) {
    said.refuse("eos_token_id", "one that pad_token_id and bad_words_ids do not name");
  }
  refuse_other_searches(said);
  return rules;
}

}  // namespace fovea
