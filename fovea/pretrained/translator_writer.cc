// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/translator_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/error.h"
#include "fovea/nn/embedding.h"
#include "fovea/pretrained/hugging_face.h"

namespace fovea {

namespace {

double root_of_width(const TranslatorConfig& c) { return std::sqrt(static_cast<double>(c.width)); }

bool scales_embeddings(const TranslatorConfig& c) {
  return std::abs(c.embedding_scale - root_of_width(c)) <= 1e-9 * root_of_width(c);
}

struct TranslatorNeed {
  std::string_view has;
  bool (*holds)(const TranslatorConfig& config);
};

using C = TranslatorConfig;

// A choice that Marian has made, as our option spells it, and whether a model made it.
constexpr TranslatorNeed kMarianNeeds[] = {
    {"--model transformer", [](const C& c) { return c.kind == TranslatorKind::kTransformer; }},
    {"no --encoder", [](const C& c) { return c.encoder.empty(); }},
    {"--norm-position post", [](const C& c) { return c.norm_position == NormPosition::kPost; }},
    {"--norm layer", [](const C& c) { return c.norm == NormKind::kLayer; }},
    {"--ln-variant standard",
     [](const C& c) { return c.ln_variant == LayerNormVariant::kStandard; }},
    {"--position sinusoidal",
     [](const C& c) {
       return encoder_of(c).position == PositionKind::kSinusoidal &&
              decoder_of(c).position == PositionKind::kSinusoidal;
     }},
    {"--position-join add", [](const C& c) { return c.position_join == PositionJoin::kAdd; }},
    {"--embedding-scale 1 or the square root of --width",
     [](const C& c) { return c.embedding_scale == 1 || scales_embeddings(c); }},
    {"--activation relu, gelu, gelu-tanh or silu",
     [](const C& c) { return !is_gated(c.activation); }},
    {"--kv-heads as many as --heads", [](const C& c) { return c.kv_heads == c.heads; }},
    {"--head-dim of --width / --heads", [](const C& c) { return c.head_dim * c.heads == c.width; }},
    {"no --qk-norm", [](const C& c) { return !c.qk_norm; }},
    {"--score dot", [](const C& c) { return c.score == AttentionScoreKind::kDot; }},
    {"--attention-norm softmax",
     [](const C& c) { return c.attention_norm == AttentionNormKind::kSoftmax; }},
    {"no --log-n-scale", [](const C& c) { return !c.log_n_scale; }},
    {"no --score-scale", [](const C& c) { return c.score_scale == 0; }},
    {"no --softcap", [](const C& c) { return c.softcap == 0; }},
    {"no --sink", [](const C& c) { return !c.sink; }},
};

// A table of both sides beside another for the logits is written as three tables: one that is
// shared is that of the logits, too.
TranslatorConfig as_written(TranslatorConfig c) {
  c.share_embeddings = c.share_embeddings && c.tie;
  return c;
}

// Our column that is column j of theirs.
std::vector<index> columns_in(SinusoidOrder theirs, const TranslatorConfig& c) {
  std::vector<index> columns(static_cast<std::size_t>(c.width));
  for (index i = 0; i < c.width / 2; ++i) {
    const SinusoidColumns to = sinusoid_columns(i, {.width = c.width, .order = theirs}),
                          from = sinusoid_columns(i, {.width = c.width, .order = c.sinusoid});
    columns[static_cast<std::size_t>(to.sine)] = from.sine;
    columns[static_cast<std::size_t>(to.cosine)] = from.cosine;
  }
  return columns;
}

// Whether it is the rows of a parameter that stand for the columns of positions, and not its
// columns: it makes or scales rows of the model's width. Other vectors have neither.
bool has_rows_of_model(std::string_view name) {
  return name.find("norm.") != name.npos || name.ends_with(".out.weight") ||
         name.ends_with(".out.bias");
}

// A copy whose rows or columns of the model's width are in the order of columns_in().
Tensor in_order(const Parameter& parameter, const std::vector<index>& columns) {
  const Tensor& ours = parameter.value;
  const bool is_vector = ours.shape().axes() == 1, of_rows = has_rows_of_model(parameter.name);
  Tensor theirs = Tensor::empty(ours.shape());
  if (is_vector) {
    const auto from = ours.vec<float>();
    const auto to = theirs.vec<float>();
    for (index n = 0; n < to.size; ++n) {
      to[n] = from[of_rows ? columns[static_cast<std::size_t>(n)] : n];
    }
    return theirs;
  }
  const auto from = ours.rows<float>();
  const auto to = theirs.rows<float>();
  for (index n = 0; n < to.rows; ++n) {
    const float* const row = from[of_rows ? columns[static_cast<std::size_t>(n)] : n];
    for (index j = 0; j < to.columns; ++j) {
      to[n][j] = row[of_rows ? j : columns[static_cast<std::size_t>(j)]];
    }
  }
  return theirs;
}

Tensor part_of_rows(const Tensor& whole, index part, index parts) {
  const Shape& shape = whole.shape();
  const index rows = shape[0] / parts, size = whole.size() / parts;
  Tensor tensor = Tensor::empty(shape.axes() == 1 ? Shape{rows} : Shape{rows, shape[1]});
  std::copy_n(whole.vec<float>().data + part * size, size, tensor.vec<float>().data);
  return tensor;
}

}  // namespace

const TranslatorArchitecture& translator_architecture_of(const TranslatorConfig& config) {
  const Json marian(Json::Object{{"model_type", "marian"}});
  const TranslatorArchitecture& row =
      translator_architecture(ForeignObject(marian, "the form of transformers"));
  std::vector<std::string_view> differences;
  for (const TranslatorNeed& need : kMarianNeeds) {
    if (!need.holds(config)) differences.push_back(need.has);
  }
  if (differences.empty()) return row;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("no translator of transformers computes what this model does; the "
                          "closest, {}, has {}",
                          row.class_name, fmt::join(differences, ", ")),
              "train a model with these options to export it");
}

Json::Object translator_config_json(const TranslatorArchitecture& architecture,
                                    const TranslatorConfig& config) {
  const TranslatorConfig c = as_written(config);
  Json::Object out = {{"architectures", Json::Array{Json(architecture.class_name)}},
                      {"model_type", architecture.name},
                      {"is_encoder_decoder", true},
                      {"vocab_size", c.vocabulary},
                      {"decoder_vocab_size", c.target_vocabulary},
                      {"share_encoder_decoder_embeddings", c.share_embeddings},
                      {"tie_word_embeddings", c.tie},
                      {"d_model", c.width}};
  for (const auto& [side, layers] : {std::pair<std::string, index>{"encoder", c.encoder_layers},
                                     {"decoder", c.decoder_layers}}) {
    out.emplace_back(side + "_layers", layers);
    out.emplace_back(side + "_attention_heads", c.heads);
    out.emplace_back(side + "_ffn_dim", c.ff);
  }
  out.emplace_back("max_position_embeddings", c.block);
  out.emplace_back("activation_function", hugging_face_name(c.activation));
  out.emplace_back("scale_embedding", scales_embeddings(c));
  out.emplace_back("dropout", c.dropout);
  return out;
}

std::vector<NamedTensor> translator_tensors_of(const TranslatorArchitecture& architecture,
                                               const TranslatorConfig& config,
                                               std::span<Parameter* const> parameters) {
  const TranslatorConfig c = as_written(config);
  const std::vector<index> columns = columns_in(SinusoidOrder::kSinCos, c);
  std::vector<NamedTensor> tensors;
  bool has_logits_bias = false;
  for (const Parameter* const parameter : parameters) {
    const std::string& ours = parameter->name;
    const Tensor values = in_order(*parameter, columns);
    const std::vector<std::string> names = translator_tensors(architecture, c, ours);
    const index parts = std::ssize(names);
    for (index n = 0; n < parts; ++n) {
      const std::string& name = names[static_cast<std::size_t>(n)];
      tensors.push_back({name, part_of_rows(values, n, parts)});
      constexpr std::string_view kWeight = ".weight";
      if (!c.bias && ours.find(".blocks.") != ours.npos && name.ends_with(kWeight)) {
        tensors.push_back({name.substr(0, name.size() - kWeight.size()) + ".bias",
                           Tensor(Shape{values.shape()[0] / parts})});
      }
    }
    if (ours == "output.bias") {
      has_logits_bias = true;
      Tensor row = Tensor::empty({1, values.size()});
      std::ranges::copy(values.vec<float>(), row.vec<float>().begin());
      tensors.back().tensor = std::move(row);
    }
    if (ours == "encoder.embedding.tokens" && config.share_embeddings && !c.share_embeddings) {
      tensors.push_back({translator_tensors(architecture, c, "decoder.embedding.tokens")[0],
                         part_of_rows(values, 0, 1)});
    }
  }
  if (!has_logits_bias) {
    tensors.push_back(
        {std::string(architecture.logits_bias), Tensor(Shape{1, c.target_vocabulary})});
  }
  return tensors;
}

}  // namespace fovea
