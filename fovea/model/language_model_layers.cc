// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/language_model_layers.h"

#include <vector>

#include "fovea/attention/mask/band.h"
#include "fovea/parts/part_table.h"

namespace fovea {

namespace {

Biases biases(const LanguageModelConfig& c) { return c.bias ? Biases::kLearned : Biases::kNone; }

NormOptions norm_options(const LanguageModelConfig& c) {
  return {.width = c.width, .kind = c.norm, .variant = c.ln_variant, .bias = biases(c)};
}

AttentionVariant variant_of(const LanguageModelConfig& c) {
  const bool rotary = c.position == PositionKind::kRotary;
  return {.score = c.score,
          .log_n_scale = c.log_n_scale ? static_cast<double>(c.block) : 0,
          .softcap = c.softcap,
          .t5_causal = true,
          .t5_max_distance = c.t5_max_distance,
          .norm = c.attention_norm,
          .rotary = rotary ? RotaryPairs::kHalves : RotaryPairs::kNone,
          .rotary_base = c.rope_base};
}

// Of the axis that the tensor alone has.
index own_size(const LanguageModelConfig& c, std::string_view tensor) {
  if (tensor == "t5") return c.t5_buckets;
  return tensor == "shaw_k" ? c.shaw_clip : 1;
}

std::vector<LayerPart> parts_of(const LanguageModelConfig& c) {
  using Learning = LayerPart::Learning;
  std::vector<LayerPart> parts;
  for (const AttentionPart& row : attention_parts()) {
    const bool is_position = &row == part_of(c.position);
    if (is_position || row.score == c.score || (c.sink && row.tensor == "sink")) {
      const bool published = row.start == PartStart::kSlopes;
      parts.push_back(
          {row.tensor, own_size(c, row.tensor), published ? Learning::kFixed : Learning::kLearned});
    }
  }
  return parts;
}

BlockOptions block_options(const LanguageModelConfig& c, index window) {
  const Init output_init = residual_init(c.layers);
  BlockOptions options;
  options.attention.width = c.width;
  options.attention.heads = c.heads;
  options.attention.kv_heads = c.kv_heads;
  options.attention.head_dim = c.head_dim;
  options.attention.bias = biases(c);
  options.attention.output_init = output_init;
  options.attention.mask = mask::Causal();
  options.attention.window = window;
  options.attention.dropout = c.dropout;
  options.attention.qk_norm = c.qk_norm ? QkNorm::kRms : QkNorm::kNone;
  options.attention.variant = variant_of(c);
  options.attention.parts = parts_of(c);
  options.feed_forward = {.width = c.width,
                          .hidden = c.ff,
                          .activation = c.activation,
                          .bias = biases(c),
                          .output_init = output_init};
  options.residual = {.norm = norm_options(c), .position = c.norm_position, .dropout = c.dropout};
  return options;
}

}  // namespace

LanguageModelLayers::LanguageModelLayers(const LanguageModelConfig& c, const ParameterScope& scope)
    : dropout_(c.dropout),
      embedding_({.vocabulary = c.vocabulary,
                  .width = c.width,
                  .positions = c.position_max,
                  .position = c.position,
                  .join = c.position_join,
                  .sinusoid = c.sinusoid,
                  .scale = c.embedding_scale},
                 scope["embedding"]) {
  const std::vector<index> windows = layer_windows(c);
  for (index l = 0; l < c.layers; ++l) {
    blocks_.emplace_back(block_options(c, windows[static_cast<std::size_t>(l)]),
                         scope["blocks"][l]);
  }
  if (c.norm_position == NormPosition::kPre) norm_.emplace(norm_options(c), scope["norm"]);
  if (!c.tie) {
    output_.emplace(LinearOptions{.in = c.width, .out = c.vocabulary, .bias = biases(c)},
                    scope["output"]);
  }
}

Variable LanguageModelLayers::hidden(Tape& tape, Vec<const std::int32_t> ids,
                                     const PackedRows& rows, const DropoutKey& key,
                                     std::span<HeadStatistics> seen) const {
  check(seen.empty() || seen.size() == blocks_.size(),
        "language model: {} statistics for {} layers", seen.size(), blocks_.size());
  Variable x = embedding_.forward(tape, ids, rows);
  x = dropout(tape, x, {dropout_, {key.seed, key.step, 0}}, rows);
  for (std::size_t l = 0; l < blocks_.size(); ++l) {
    x = blocks_[l].forward(tape, x, rows, {key.seed, key.step, static_cast<std::uint32_t>(l)},
                           seen.empty() ? nullptr : &seen[l]);
  }
  return finish(tape, x);
}

Variable LanguageModelLayers::hidden(Tape& tape, Vec<const std::int32_t> ids,
                                     const PackedRows& rows, std::vector<KvCache>& caches) const {
  Variable x = embedding_.forward(tape, ids, rows);
  for (std::size_t l = 0; l < blocks_.size(); ++l) x = blocks_[l].forward(tape, x, caches[l]);
  return finish(tape, x);
}

std::vector<KvCache> LanguageModelLayers::make_caches(index capacity) const {
  std::vector<KvCache> caches;
  for (const Block& block : blocks_) caches.emplace_back(block.attention().cache_options(capacity));
  return caches;
}

}  // namespace fovea
