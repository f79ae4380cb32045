// SPDX-License-Identifier: Apache-2.0
#include "fovea/pretrained/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/base/words.h"
#include "fovea/pretrained/foreign_json.h"
#include "fovea/pretrained/translator_table.h"
#include "fovea/text/keyed_hash.h"

namespace fovea {

namespace {

using Config = LanguageModelConfig;

// --------------------------------------------------------------------------------- which one it is

bool has_one_window(const Config& c) {
  const std::vector<index> windows = layer_windows(c);
  const index widest = std::ranges::max(windows);
  return std::ranges::all_of(windows, [&](index one) { return one == 0 || one == widest; });
}

bool has_no_window(const Config& c) { return std::ranges::max(layer_windows(c)) == 0; }

using Need = ArchitectureNeed;

// All architectures have these.
constexpr Need kCommon[] = {
    {"--model transformer",
     [](const Config& c) { return c.kind == LanguageModelKind::kTransformer; }},
    {"no --compat", [](const Config& c) { return c.compat.empty(); }},
    {"--score dot", [](const Config& c) { return c.score == AttentionScoreKind::kDot; }},
    {"--attention-norm softmax",
     [](const Config& c) { return c.attention_norm == AttentionNormKind::kSoftmax; }},
    {"--no-log-n-scale", [](const Config& c) { return !c.log_n_scale; }},
    {"--no-sink", [](const Config& c) { return !c.sink; }},
    // Their output projection has no bias.
    {"--tie or --no-bias", [](const Config& c) { return c.tie || !c.bias; }},
};

constexpr Need kPre = {"--norm-position pre",
                       [](const Config& c) { return c.norm_position == NormPosition::kPre; }};
constexpr Need kUsualScale = {"--score-scale 0",
                              [](const Config& c) { return c.score_scale == 0; }};
constexpr Need kNoCap = {"--softcap 0", [](const Config& c) { return c.softcap == 0; }};
constexpr Need kNoLogitCap = {"--logit-softcap 0",
                              [](const Config& c) { return c.logit_softcap == 0; }};
constexpr Need kNoLocalBase = {"--rope-local-base 0",
                               [](const Config& c) { return c.rope_local_base == 0; }};

// All but those of Gemma have these.
constexpr Need kPlain[] = {
    kPre,        {"--embedding-scale 1", [](const Config& c) { return c.embedding_scale == 1; }},
    kUsualScale, kNoCap,
    kNoLogitCap, kNoLocalBase,
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
constexpr Need kGated = {"--activation swiglu, geglu, geglu-tanh or reglu",
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

constexpr Need kGemma[] = {
    {"--embedding-scale of the square root of --width",
     [](const Config& c) {
       const double root = std::sqrt(static_cast<double>(c.width));
       return std::abs(c.embedding_scale - root) <= 1e-6 * root;
     }},
    kRotary,
    kRmsNorm,
    kNoBias,
};
constexpr Need kSandwich = {"--norm-position sandwich", [](const Config& c) {
                              return c.norm_position == NormPosition::kSandwich;
                            }};
constexpr Need kRootOfWhole = {
    "--score-scale of 1 / the square root of a whole number", [](const Config& c) {
      const auto scalar = static_cast<double>(query_scalar(c));
      const double has = c.score_scale > 0 ? 1 / (c.score_scale * c.score_scale) : scalar;
      return scalar >= 1 && std::abs(has - scalar) <= 1e-9 * scalar;
    }};
constexpr Need kByTanh = {"--activation geglu-tanh", [](const Config& c) {
                            return c.activation == LayerActivation::kGegluTanh;
                          }};
constexpr Need kOfGemma[] = {kPre,        kByTanh, kNoQkNorm,   kNoWindow,
                             kUsualScale, kNoCap,  kNoLogitCap, kNoLocalBase};
constexpr Need kOfGemma2[] = {kSandwich, kGated, kNoQkNorm, kRootOfWhole, kOneWindow, kNoLocalBase};
constexpr Need kOfGemma3[] = {kSandwich, kGated, kQkNorm, kRootOfWhole, kOneWindow};

// The needs of an architecture that the model does not meet.
std::vector<std::string_view> differences(const Config& c, const Architecture& row) {
  std::vector<std::string_view> found;
  for (const auto needs : {row.family, std::span<const Need>(kCommon), row.needs}) {
    for (const Need& need : needs) {
      if (!need.holds(c)) found.push_back(need.has);
    }
  }
  return found;
}

// ------------------------------------------------------------------------------- names of tensors

using Size = index (*)(const Config& c);

index none(const Config&) { return 0; }
index vocabulary(const Config& c) { return c.vocabulary; }
index positions(const Config& c) { return c.position_max; }
index width(const Config& c) { return c.width; }
index hidden(const Config& c) { return c.ff; }
index head(const Config& c) { return c.head_dim; }
index queries(const Config& c) { return c.heads * c.head_dim; }
index keys(const Config& c) { return c.kv_heads * c.head_dim; }
index before_values(const Config& c) { return queries(c) + keys(c); }
index all_rows(const Config& c) { return queries(c) + 2 * keys(c); }
index query_heads(const Config& c) { return c.heads; }
index experts(const Config& c) { return c.experts; }
index gates(const Config& c) { return 2 * c.ff; }
index rows_of_gates(const Config& c) { return c.experts * gates(c); }
index rows_of_outputs(const Config& c) { return c.experts * c.width; }

bool is_untied(const Config& c) { return !c.tie; }
bool has_qk_norm(const Config& c) { return c.qk_norm; }

// The table of token embeddings has no ".weight" in our names.
constexpr std::string_view kTokens = "embedding.tokens", kPositions = "embedding.positions";

constexpr TensorRow matrix(std::string_view ours, std::string_view hugging_face,
                           std::string_view gguf, Size rows, Size columns, BiasRule bias) {
  return {.ours = ours,
          .hugging_face = hugging_face,
          .gguf = gguf,
          .rows = rows,
          .columns = columns,
          .bias = bias};
}

constexpr TensorRow gpt2_matrix(std::string_view ours, std::string_view hugging_face,
                                std::string_view gguf, Size rows, Size columns) {
  TensorRow row = matrix(ours, hugging_face, gguf, rows, columns, BiasRule::kAlways);
  row.in_hugging_face = RowOrder::kTransposed;
  return row;
}

constexpr TensorRow untied_output() {
  TensorRow row = matrix("output", "lm_head", "output", vocabulary, width, BiasRule::kNever);
  row.exists = is_untied;
  return row;
}

constexpr TensorRow kGpt2Tensors[] = {
    {kTokens, "transformer.wte", "token_embd", vocabulary, width},
    {kPositions, "transformer.wpe", "position_embd", positions, width},
    untied_output(),
    {.ours = "blocks.{}.attention_norm",
     .hugging_face = "transformer.h.{}.ln_1",
     .gguf = "blk.{}.attn_norm",
     .rows = width,
     .bias = BiasRule::kAlways},
    gpt2_matrix("blocks.{}.attention.qkv", "transformer.h.{}.attn.c_attn", "blk.{}.attn_qkv",
                all_rows, width),
    gpt2_matrix("blocks.{}.attention.out", "transformer.h.{}.attn.c_proj", "blk.{}.attn_output",
                width, queries),
    {.ours = "blocks.{}.feed_forward_norm",
     .hugging_face = "transformer.h.{}.ln_2",
     .gguf = "blk.{}.ffn_norm",
     .rows = width,
     .bias = BiasRule::kAlways},
    gpt2_matrix("blocks.{}.feed_forward.in", "transformer.h.{}.mlp.c_fc", "blk.{}.ffn_up", hidden,
                width),
    gpt2_matrix("blocks.{}.feed_forward.out", "transformer.h.{}.mlp.c_proj", "blk.{}.ffn_down",
                width, hidden),
    {.ours = "norm",
     .hugging_face = "transformer.ln_f",
     .gguf = "output_norm",
     .rows = width,
     .bias = BiasRule::kAlways},
};

struct LlamaRules {
  BiasRule of_heads;    // of the projections to queries, keys and values
  BiasRule of_output;   // of heads
  BiasRule of_network;  // of the feed-forward network
  bool pairs_in_gguf;   // rows of queries and keys as kQueryPairs and kKeyPairs
};

constexpr std::array<TensorRow, 14> llama_tensors(const LlamaRules& rules) {
  const auto projection = [&](std::string_view theirs, std::string_view gguf, Size rows, Size first,
                              RowOrder pairs) {
    TensorRow row = matrix("blocks.{}.attention.qkv", theirs, gguf, rows, width, rules.of_heads);
    row.first = first;
    if (rules.pairs_in_gguf) row.in_gguf = pairs;
    return row;
  };
  return {{
      {kTokens, "model.embed_tokens", "token_embd", vocabulary, width},
      untied_output(),
      {"blocks.{}.attention_norm", "model.layers.{}.input_layernorm", "blk.{}.attn_norm", width},
      projection("model.layers.{}.self_attn.q_proj", "blk.{}.attn_q", queries, none,
                 RowOrder::kQueryPairs),
      projection("model.layers.{}.self_attn.k_proj", "blk.{}.attn_k", keys, queries,
                 RowOrder::kKeyPairs),
      projection("model.layers.{}.self_attn.v_proj", "blk.{}.attn_v", keys, before_values,
                 RowOrder::kAsTheyAre),
      matrix("blocks.{}.attention.out", "model.layers.{}.self_attn.o_proj", "blk.{}.attn_output",
             width, queries, rules.of_output),
      {.ours = "blocks.{}.attention.q_norm",
       .hugging_face = "model.layers.{}.self_attn.q_norm",
       .gguf = "blk.{}.attn_q_norm",
       .rows = head,
       .exists = has_qk_norm},
      {.ours = "blocks.{}.attention.k_norm",
       .hugging_face = "model.layers.{}.self_attn.k_norm",
       .gguf = "blk.{}.attn_k_norm",
       .rows = head,
       .exists = has_qk_norm},
      {"blocks.{}.feed_forward_norm", "model.layers.{}.post_attention_layernorm", "blk.{}.ffn_norm",
       width},
      matrix("blocks.{}.feed_forward.gate", "model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate",
             hidden, width, rules.of_network),
      matrix("blocks.{}.feed_forward.in", "model.layers.{}.mlp.up_proj", "blk.{}.ffn_up", hidden,
             width, rules.of_network),
      matrix("blocks.{}.feed_forward.out", "model.layers.{}.mlp.down_proj", "blk.{}.ffn_down",
             width, hidden, rules.of_network),
      {"norm", "model.norm", "output_norm", width},
  }};
}

constexpr auto kLlamaTensors =
    llama_tensors({BiasRule::kIfOurs, BiasRule::kIfOurs, BiasRule::kIfOurs, true});
constexpr auto kQwen2Tensors =
    llama_tensors({BiasRule::kIfOurs, BiasRule::kNever, BiasRule::kNever, false});
constexpr auto kQwen3Tensors =
    llama_tensors({BiasRule::kNever, BiasRule::kNever, BiasRule::kNever, false});

constexpr TensorRow gains(std::string_view ours, std::string_view hugging_face,
                          std::string_view gguf, Size rows) {
  return {.ours = ours,
          .hugging_face = hugging_face,
          .gguf = gguf,
          .rows = rows,
          .added_to_hugging_face = 1};
}

// Those of Llama with gains 1 + w.
constexpr std::array<TensorRow, 14> gemma_tensors() {
  auto rows = llama_tensors({BiasRule::kNever, BiasRule::kNever, BiasRule::kNever, false});
  for (TensorRow& row : rows) {
    if (row.columns == nullptr) row.added_to_hugging_face = 1;
  }
  return rows;
}

// The same, with a norm behind each part.
constexpr std::array<TensorRow, 16> gemma2_tensors() {
  const auto gemma = gemma_tensors();
  std::array<TensorRow, 16> rows{};
  std::copy(gemma.begin(), gemma.end(), rows.begin());
  for (TensorRow& row : rows) {
    if (row.ours == "blocks.{}.feed_forward_norm") {
      row.hugging_face = "model.layers.{}.pre_feedforward_layernorm";
    }
  }
  rows[14] = gains("blocks.{}.attention_norm.after", "model.layers.{}.post_attention_layernorm",
                   "blk.{}.post_attention_norm", width);
  rows[15] = gains("blocks.{}.feed_forward_norm.after",
                   "model.layers.{}.post_feedforward_layernorm", "blk.{}.post_ffw_norm", width);
  return rows;
}

constexpr auto kGemmaTensors = gemma_tensors();
constexpr auto kGemma2Tensors = gemma2_tensors();

constexpr TensorRow whole(std::string_view ours, std::string_view hugging_face, Size rows,
                          Size columns, RowOrder order = RowOrder::kAsTheyAre) {
  return {.ours = ours,
          .hugging_face = hugging_face,
          .gguf = {},
          .rows = rows,
          .columns = columns,
          .in_hugging_face = order,
          .whole_names = true};
}

// Those of Llama but for its network.
constexpr std::array<TensorRow, 17> gpt_oss_tensors() {
  const auto llama =
      llama_tensors({BiasRule::kAlways, BiasRule::kAlways, BiasRule::kAlways, false});
  std::array<TensorRow, 17> rows{};
  std::size_t count = 0;
  for (const TensorRow& row : llama) {
    if (!row.ours.starts_with("blocks.{}.feed_forward.")) rows[count++] = row;
  }
  const auto add = [&](const TensorRow& row) { rows[count++] = row; };
  add(whole("blocks.{}.attention.sink", "model.layers.{}.self_attn.sinks", query_heads, nullptr));
  add(matrix("blocks.{}.feed_forward.router", "model.layers.{}.mlp.router", "", experts, width,
             BiasRule::kAlways));
  add(whole("blocks.{}.feed_forward.in.weight", "model.layers.{}.mlp.experts.gate_up_proj",
            rows_of_gates, width, RowOrder::kExperts));
  add(whole("blocks.{}.feed_forward.in.bias", "model.layers.{}.mlp.experts.gate_up_proj_bias",
            experts, gates));
  add(whole("blocks.{}.feed_forward.out.weight", "model.layers.{}.mlp.experts.down_proj",
            rows_of_outputs, hidden, RowOrder::kExperts));
  add(whole("blocks.{}.feed_forward.out.bias", "model.layers.{}.mlp.experts.down_proj_bias",
            experts, width));
  return rows;
}

constexpr auto kGptOssTensors = gpt_oss_tensors();

constexpr std::string_view kLlamaKeys[] = {
    "vocab_size",
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.finetuned",
    "tensor_data_layout",
};

constexpr std::string_view kOnlyGemmaKeys[] = {
    "attention.sliding_window", "attention.sliding_window_pattern", "attn_logit_softcapping",
    "final_logit_softcapping", "rope.freq_base_swa"};

constexpr auto kGemmaKeys = [] {
  std::array<std::string_view, std::size(kLlamaKeys) + std::size(kOnlyGemmaKeys)> keys{};
  std::copy(std::begin(kOnlyGemmaKeys), std::end(kOnlyGemmaKeys),
            std::copy(std::begin(kLlamaKeys), std::end(kLlamaKeys), keys.begin()));
  return keys;
}();

Config gpt2() {
  Config c;
  c.kind = LanguageModelKind::kTransformer;
  c.norm_position = NormPosition::kPre;
  c.embedding_scale = 1;
  c.bias = true;
  return c;
}

Config llama() {
  Config c = gpt2();
  c.position = PositionKind::kRotary;
  c.norm = NormKind::kRms;
  c.activation = LayerActivation::kSwiglu;
  c.bias = false;
  return c;
}

Config qwen2() {
  Config c = llama();
  c.bias = true;
  return c;
}

Config qwen3() {
  Config c = llama();
  c.qk_norm = true;
  return c;
}

Config gpt_oss() {
  Config c = qwen2();
  c.sink = true;
  c.tie = false;
  return c;
}

Config gemma() {
  Config c = llama();
  c.activation = LayerActivation::kGegluTanh;
  return c;
}

Config gemma2() {
  Config c = gemma();
  c.norm_position = NormPosition::kSandwich;
  return c;
}

Config gemma3() {
  Config c = gemma2();
  c.qk_norm = true;
  return c;
}

constexpr Architecture kArchitectures[] = {
    {"gpt2", "GPT2LMHeadModel", kGpt2Tensors, gpt2, kPlain, kOfGpt2, {}},
    {"llama", "LlamaForCausalLM", kLlamaTensors, llama, kPlain, kOfLlama, kLlamaKeys},
    {"mistral", "MistralForCausalLM", kLlamaTensors, llama, kPlain, kOfMistral, {}},
    {"qwen2", "Qwen2ForCausalLM", kQwen2Tensors, qwen2, kPlain, {}, kLlamaKeys},
    {"qwen3", "Qwen3ForCausalLM", kQwen3Tensors, qwen3, kPlain, kOfQwen3, kLlamaKeys},
    {"gemma", "GemmaForCausalLM", kGemmaTensors, gemma, kGemma, kOfGemma, kLlamaKeys},
    {"gemma2", "Gemma2ForCausalLM", kGemma2Tensors, gemma2, kGemma, kOfGemma2, kGemmaKeys},
    {"gemma3", "Gemma3ForCausalLM", kGemma2Tensors, gemma3, kGemma, kOfGemma3, kGemmaKeys,
     "gemma3_text"},
    {"gpt_oss", "GptOssForCausalLM", kGptOssTensors, gpt_oss, {}, {}, {}},
};

const Architecture* row_named(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (row.name == name || row.model_type == name) return &row;
  }
  return nullptr;
}

// Appends the weight of a row, and its bias.
void add_places(const TensorRow& row, const std::string& ours, const std::string& theirs,
                ModelForm form, const Config& c, std::vector<TensorPlace>& places) {
  const RowOrder order = form == ModelForm::kGguf ? row.in_gguf : row.in_hugging_face;
  const index rows = row.rows(c), first = row.first(c);
  Shape shape{rows};
  if (row.columns != nullptr) {
    const index columns = row.columns(c);
    shape = order == RowOrder::kTransposed ? Shape{columns, rows} : Shape{rows, columns};
    if (order == RowOrder::kExperts) shape = {c.experts, columns, rows / c.experts};
  }
  if (row.whole_names) {
    places.push_back({theirs, shape, ours, first, order});
    return;
  }
  const bool bare = ours == kTokens || ours == kPositions;
  const double added = form == ModelForm::kGguf ? 0 : row.added_to_hugging_face;
  places.push_back(
      {theirs + ".weight", shape, bare ? ours : ours + ".weight", first, order, added});
  if (row.bias == BiasRule::kNever || (row.bias == BiasRule::kIfOurs && !c.bias)) return;
  places.push_back({theirs + ".bias",
                    {rows},
                    c.bias ? ours + ".bias" : std::string(),
                    first,
                    order == RowOrder::kTransposed ? RowOrder::kAsTheyAre : order});
}

// ------------------------------------------------------------------------------- values of tensors

index heads_of(RowOrder order, const Config& c) {
  switch (order) {
    case RowOrder::kQueryPairs:
      return c.heads;
    case RowOrder::kKeyPairs:
      return c.kv_heads;
    default:
      return 0;
  }
}

// The row of theirs that is row n of ours, among `rows`: of heads, rows 2 j and 2 j + 1 of each are
// our rows j and j + half.
index row_of_theirs(index n, index rows, index heads) {
  if (heads == 0) return n;
  const index size = rows / heads, half = size / 2, in_head = n % size;
  return n - in_head + in_head % half * 2 + in_head / half;
}

index rows_of(const TensorPlace& place) {
  if (place.order == RowOrder::kExperts) return place.shape[0] * place.shape[2];
  return place.shape[place.order == RowOrder::kTransposed ? 1 : 0];
}

index columns_of(const Tensor& tensor) { return tensor.size() / tensor.shape()[0]; }

Tensor transposed(const Tensor& matrix) {
  const auto from = matrix.rows<float>();
  Tensor result = Tensor::empty({from.columns, from.rows});
  const auto to = result.rows<float>();
  for (index i = 0; i < from.rows; ++i) {
    for (index j = 0; j < from.columns; ++j) to[j][i] = from[i][j];
  }
  return result;
}

// Each of several matrices [count, rows, columns] transposed, one behind another.
Tensor transposed_each(const Tensor& all, index count, index rows, index columns,
                       const Shape& shape) {
  Tensor result = Tensor::empty(shape);
  const index size = rows * columns;
  for (index e = 0; e < count; ++e) {
    const float* const from = all.data<float>() + e * size;
    float* const to = result.data<float>() + e * size;
    for (index i = 0; i < rows; ++i) {
      for (index j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
    }
  }
  return result;
}

void add_to(Tensor& values, double number) {
  if (number == 0) return;
  for (float& value : values.vec<float>()) value += static_cast<float>(number);
}

class WeightReader {
 public:
  WeightReader(const Config& config, const TensorSource& tensors)
      : config_(config), tensors_(tensors) {
    for (std::size_t n = 0; n < tensors.names().size(); ++n) places_.emplace(tensors.names()[n], n);
  }

  /// Marks the tensor as used, as the next two do.
  void skip(const TensorPlace& place) { take(place); }

  void set(const TensorPlace& place, Tensor& ours) {
    Tensor values = tensors_.read(take(place)).to(DType::kFloat32);
    if (place.order == RowOrder::kTransposed) values = transposed(values);
    if (place.order == RowOrder::kExperts) {
      const Shape& s = place.shape;
      values = transposed_each(values, s[0], s[1], s[2], {s[0] * s[2], s[1]});
    }
    add_to(values, place.added);
    const index rows = rows_of(place), columns = columns_of(ours);
    const index heads = heads_of(place.order, config_);
    for (index n = 0; n < rows; ++n) {
      std::copy_n(values.data<float>() + row_of_theirs(n, rows, heads) * columns, columns,
                  ours.data<float>() + (place.first + n) * columns);
    }
  }

  /// Whether products can read the tensor as it lies.
  bool lies_in_blocks(const TensorPlace& place) const {
    const auto found = places_.find(place.theirs);
    const bool is_bias = place.ours.ends_with(".bias");  // of experts: a row each
    if (found == places_.end() || found->second == kUsed || place.shape.axes() != 2 || is_bias) {
      return false;
    }
    const std::optional<BlockType> type = tensors_.block_type(found->second);
    return type && place.order != RowOrder::kTransposed &&
           place.shape.back() % layout_of(*type).values == 0;
  }

  /// Appends the rows of the tensor, which lies so, in the order of ours.
  void append(const TensorPlace& place, WeightTypes types, BlockMatrix& ours) {
    check(place.first == ours.rows(), "{}: rows are set out of order", place.ours);
    const std::size_t n = take(place);
    const BlockType type = *tensors_.block_type(n);
    if (types == WeightTypes::kPlanned) return ours.append_planned(type, rows_of(place));
    SharedBytes blocks = tensors_.blocks(n);
    const index rows = rows_of(place), heads = heads_of(place.order, config_);
    if (heads > 0) {
      std::vector<std::uint8_t> sorted(blocks.size());
      const std::size_t bytes = blocks.size() / static_cast<std::size_t>(rows);
      for (index n_ours = 0; n_ours < rows; ++n_ours) {
        const auto from = static_cast<std::size_t>(row_of_theirs(n_ours, rows, heads)) * bytes;
        const auto to = static_cast<std::size_t>(n_ours) * bytes;
        std::copy_n(blocks.data() + from, bytes, sorted.data() + to);
      }
      blocks.require_unchanged();
      blocks = std::move(sorted);
    }
    ours.append(type, rows, std::move(blocks));
  }

  void refuse_others(bool (*ignores)(std::string_view name)) const {
    for (const std::string& name : tensors_.names()) {
      if (places_.find(name)->second == kUsed) continue;
      if (ignores != nullptr && ignores(name)) continue;
      throw Error(ErrorCode::kModelWrongKind,
                  fmt::format("tensor {} has no place in the architecture: the model computes what "
                              "fovea does not know",
                              printable(name)),
                  "take a model without it");
    }
  }

 private:
  // The number of the tensor at this place, which is now used.
  std::size_t take(const TensorPlace& place) {
    const auto found = places_.find(place.theirs);
    if (found == places_.end()) {
      throw Error(ErrorCode::kModelDamaged, fmt::format("tensor {} is missing", place.theirs),
                  "get the model again; a part of it may be in another file");
    }
    const Shape shape = tensors_.info(found->second).shape;
    if (shape != place.shape) {
      fail(ErrorCode::kModelDamaged, "tensor {} is {}; its sizes ask for {}", place.theirs,
           to_string(shape), to_string(place.shape));
    }
    return std::exchange(found->second, kUsed);
  }

  static constexpr std::size_t kUsed = ~std::size_t{0};

  const Config& config_;
  const TensorSource& tensors_;
  KeyedMap<std::string, std::size_t> places_;  // kUsed: was read
};

// Matrices without rows stand for our weights that stay as they lie, since all their tensors can.
KeyedMap<std::string_view, std::shared_ptr<BlockMatrix>> kept_in_blocks(
    const WeightReader& reader, std::span<const TensorPlace> places, WeightTypes types) {
  KeyedMap<std::string_view, std::shared_ptr<BlockMatrix>> kept;
  if (types == WeightTypes::kFloat32) return kept;
  std::set<std::string_view> widened;
  for (const TensorPlace& place : places) {
    if (!reader.lies_in_blocks(place)) widened.insert(place.ours);
  }
  for (const TensorPlace& place : places) {
    if (widened.contains(place.ours)) continue;
    kept.emplace(place.ours, std::make_shared<BlockMatrix>(place.shape.back()));
  }
  return kept;
}

}  // namespace

bool is_architecture(std::string_view name) { return row_named(name) != nullptr; }

const Architecture& architecture(std::string_view name) {
  if (const Architecture* const row = row_named(name)) return *row;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("the architecture {} is not one that fovea knows: {}", printable(name),
                          names_in(kArchitectures)),
              is_translator_architecture(name) ? "it is a translator: fovea translate reads it"
                                               : kReadableHint);
}

const Architecture& architecture_of(const Config& c) {
  const Architecture* closest = nullptr;
  std::vector<std::string_view> fewest;
  for (const Architecture& row : kArchitectures) {
    if (row.needs.empty()) continue;  // it is read alone
    std::vector<std::string_view> found = differences(c, row);
    if (closest != nullptr && found.size() >= fewest.size()) continue;
    closest = &row;
    fewest = std::move(found);
  }
  if (fewest.empty()) return *closest;
  throw Error(ErrorCode::kModelWrongKind,
              fmt::format("no architecture of other programs computes what this model does; the "
                          "closest, {}, has {}",
                          closest->class_name, fmt::join(fewest, ", ")),
              "train a model with these options to export it");
}

std::vector<TensorPlace> tensor_places(const Architecture& architecture, ModelForm form,
                                       const Config& c) {
  std::vector<TensorPlace> places;
  for (const TensorRow& row : architecture.tensors) {
    if (!row.exists(c)) continue;
    const std::string_view theirs = form == ModelForm::kGguf ? row.gguf : row.hugging_face;
    const index layers = row.ours.find("{}") == row.ours.npos ? 1 : c.layers;
    for (index n = 0; n < layers; ++n) {
      add_places(row, fmt::format(fmt::runtime(row.ours), n), fmt::format(fmt::runtime(theirs), n),
                 form, c, places);
    }
  }
  return places;
}

std::vector<NamedTensor> tensors_at(std::span<const TensorPlace> places, const Config& c,
                                    std::span<const NamedTensor> ours) {
  KeyedMap<std::string_view, const Tensor*> by_name;
  for (const NamedTensor& one : ours) by_name.emplace(one.name, &one.tensor);
  std::vector<NamedTensor> theirs;
  for (const TensorPlace& place : places) {
    if (place.ours.empty()) {
      theirs.push_back({place.theirs, Tensor(place.shape)});
      continue;
    }
    const auto found = by_name.find(place.ours);
    check(found != by_name.end(), "the model has no tensor {}", place.ours);
    const Tensor held = found->second->to(DType::kFloat32);
    const index rows = rows_of(place), columns = columns_of(held), heads = heads_of(place.order, c);
    Tensor values = Tensor::empty(held.shape().axes() == 1 ? Shape{rows} : Shape{rows, columns});
    for (index n = 0; n < rows; ++n) {
      std::copy_n(held.data<float>() + (place.first + n) * columns, columns,
                  values.data<float>() + row_of_theirs(n, rows, heads) * columns);
    }
    if (place.order == RowOrder::kTransposed) values = transposed(values);
    if (place.order == RowOrder::kExperts) {
      const Shape& s = place.shape;
      values = transposed_each(values, s[0], s[2], s[1], s);
    }
    add_to(values, -place.added);
    check(values.shape() == place.shape, "{} is {}; {} asks for {}", place.ours, held.describe(),
          place.theirs, to_string(place.shape));
    theirs.push_back({place.theirs, std::move(values)});
  }
  return theirs;
}

void set_weights(std::span<Parameter* const> parameters, std::span<const TensorPlace> places,
                 const Config& config, const TensorSource& tensors, WeightTypes types,
                 bool (*ignores)(std::string_view name)) {
  KeyedMap<std::string_view, Parameter*> by_name;
  for (Parameter* const one : parameters) by_name.emplace(one->name, one);
  WeightReader reader(config, tensors);
  const auto kept = kept_in_blocks(reader, places, types);
  KeyedMap<std::string_view, index> rows;  // of ours that were set
  for (const TensorPlace& place : places) {
    const auto found = by_name.find(place.ours);
    check(found != by_name.end(), "no parameter {}", place.ours);
    if (const auto blocks = kept.find(place.ours); blocks != kept.end()) {
      reader.append(place, types, *blocks->second);
      found->second->blocks = blocks->second;
    } else if (types == WeightTypes::kPlanned) {
      reader.skip(place);
    } else {
      reader.set(place, found->second->value);
    }
    rows[place.ours] += rows_of(place);
  }
  reader.refuse_others(ignores);
  for (Parameter* const one : parameters) {
    const index set = rows.contains(one->name) ? rows[one->name] : 0;
    const bool is_bias = one->name.ends_with(".bias");
    check(set == one->value.shape()[0] || (is_bias && set == 0), "{}: {} rows are set", one->name,
          set);
    if (set == 0 && types != WeightTypes::kPlanned) one->value.fill_zero();
    ++one->version;
  }
}

index query_scalar(const Config& c) {
  if (c.score_scale == 0) return c.head_dim;
  const double whole = std::round(1 / (c.score_scale * c.score_scale));
  return static_cast<index>(std::min(whole, static_cast<double>(kLargestSize)));
}

std::optional<index> seen_keys(const Config& c) {
  const index widest = std::ranges::max(layer_windows(c));
  return widest > 0 ? std::optional(widest + 1) : std::nullopt;
}

std::string windows_of(const std::vector<bool>& narrow, index seen) {
  if (std::ranges::find(narrow, true) == narrow.end()) return {};
  std::vector<index> windows;
  for (const bool is_narrow : narrow) windows.push_back(is_narrow ? seen - 1 : 0);
  return fmt::format("{}", fmt::join(windows, ","));
}

std::vector<bool> narrow_but_every(index layers, index every) {
  std::vector<bool> narrow;
  for (index n = 1; n <= layers; ++n) narrow.push_back(n % every != 0);
  return narrow;
}

}  // namespace fovea
