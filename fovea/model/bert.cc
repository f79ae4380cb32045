// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/bert.h"

#include <algorithm>
#include <numeric>

#include "fovea/base/check.h"
#include "fovea/base/option.h"

namespace fovea {

namespace {

NormOptions norm_of(const BertConfig& c) { return {.width = c.width, .epsilon = c.norm_epsilon}; }

// `distances`: the biases that all blocks share, or null.
BlockOptions block_of(const BertConfig& c, Parameter* distances) {
  BlockOptions o;
  o.attention.width = c.width;
  o.attention.heads = c.heads;
  o.attention.dropout = c.dropout;
  if (distances != nullptr) {
    o.attention.parts.push_back({.tensor = "t5", .own_size = c.buckets, .shared = distances});
  }
  o.feed_forward = {.width = c.width, .hidden = c.ff, .activation = c.activation};
  o.residual = {.norm = norm_of(c), .position = NormPosition::kPost, .dropout = c.dropout};
  return o;
}

}  // namespace

BertConfig pretrained_layers(const EncoderConfig& c) {
  return {.vocabulary = c.vocabulary,
          .width = c.width,
          .layers = c.base.layers,
          .heads = c.heads,
          .ff = c.ff,
          .block = c.block,
          .types = c.base.types,
          .padding = static_cast<std::int32_t>(c.base.padding),
          .buckets = c.base.buckets,
          .norm_epsilon = c.norm_epsilon,
          .activation = c.activation,
          .pooled = c.base.relu_pooler ? Activation::kRelu : Activation::kTanh,
          .dropout = c.dropout};
}

void take_layers(EncoderConfig& c, const BertConfig& layers) {
  c.base = {.layers = layers.layers,
            .types = layers.types,
            .padding = layers.padding,
            .buckets = layers.buckets,
            .relu_pooler = layers.pooled == Activation::kRelu};
  c.vocabulary = layers.vocabulary;
  c.width = layers.width;
  c.heads = c.kv_heads = layers.heads;
  c.head_dim = layers.width / layers.heads;
  c.ff = layers.ff;
  c.block = layers.block;
  c.position = PositionKind::kLearned;
  c.position_max = layers.position_rows();
  c.norm_position = NormPosition::kPost;
  c.norm_epsilon = layers.norm_epsilon;
  c.bias = true;
  c.activation = layers.activation;
  c.dropout = layers.dropout;
  c.embedding_scale = 1;
}

void check_layers(const EncoderConfig& c) {
  check_size("vocabulary", c.vocabulary, 1);
  check_size("width", c.width, 1);
  check_size("ff", c.ff, 1);
  check_size("block", c.block, 1, kLargestSize - c.base.padding - 1);
  require_option(c.heads > 0 && c.width % c.heads == 0, "heads", c.heads, "a divisor of --width {}",
                 c.width);
  if (c.encoder.empty() && c.features == 0) return;
  fail_option("encoder", c.encoder, "none beside the layers of a base", ErrorCode::kOptionValue,
              Hint{"leave it out"});
}

bool is_of_layers(std::string_view parameter) {
  constexpr std::string_view kLayers[] = {"embedding", "types",  "embedding_norm",
                                          "distances", "blocks", "pooler"};
  return std::ranges::find(kLayers, parameter.substr(0, parameter.find('.'))) != std::end(kLayers);
}

BertLayers::BertLayers(const BertConfig& c, const ParameterScope& scope)
    : config_(c),
      embedding_({.vocabulary = c.vocabulary,
                  .width = c.width,
                  .positions = c.position_rows(),
                  .row_use = RowUse::kSparse},
                 scope["embedding"]),
      types_(c.types == 0 ? nullptr
                          : &scope["types"].add("weight", {c.types, c.width},
                                                Init::normal(kInitDeviation), Decay::kNo)),
      norm_(norm_of(c), scope["embedding_norm"]) {
  Parameter* const distances =
      c.buckets == 0
          ? nullptr
          : &scope["distances"].add("weight", {c.buckets, c.heads}, Init::zeros(), Decay::kNo);
  const BlockOptions block = block_of(c, distances);
  for (index n = 0; n < c.layers; ++n) blocks_.emplace_back(block, scope["blocks"][n]);
  if (c.pools) pooler_.emplace(LinearOptions{.in = c.width, .out = c.width}, scope["pooler"]);
  if (c.head == BertHead::kNone) return;
  output_.emplace(LinearOptions{.in = c.width, .out = c.outputs}, scope["output"]);
}

namespace {

// The rows of the table of positions, by their order in the text.
Vec<const std::int32_t> positions_of(Tape& tape, const TextRows& texts, std::int32_t padding) {
  auto* const found = tape.saved<std::int32_t>(texts.ids.size);
  for (index text = 0; text + 1 < texts.offsets.size; ++text) {
    std::int32_t last = padding;
    for (index n = texts.offsets[text]; n < texts.offsets[text + 1]; ++n) {
      found[n] = texts.ids[n] == padding ? padding : ++last;
    }
  }
  return {found, texts.ids.size};
}

Vec<const std::int32_t> zeros(Tape& tape, index count) {
  auto* const values = tape.saved<std::int32_t>(count);
  std::fill_n(values, count, 0);
  return {values, count};
}

}  // namespace

BertRows BertLayers::forward(Tape& tape, const BertBatch& batch) const {
  const Vec<const std::int32_t> ids = batch.texts.ids;
  check(batch.types.empty() || batch.types.size == ids.size, "bert: {} types for {} tokens",
        batch.types.size, ids.size);
  check(batch.hidden.empty() || static_cast<index>(batch.hidden.size()) == config_.layers + 1,
        "bert: room for the rows of {} places; there are {}", batch.hidden.size(),
        config_.layers + 1);
  const PackedRows rows = lay_out_texts(tape, batch.texts, config_.block);
  PackedRows placed = rows;
  if (config_.padding >= 0) placed.positions = positions_of(tape, batch.texts, config_.padding);
  check(batch.attention.empty() || std::ssize(batch.attention) == config_.layers,
        "bert: statistics of {} attentions; there are {}", batch.attention.size(), config_.layers);
  DropoutKey key = batch.dropout;
  Variable x = embedding_.forward(tape, ids, placed, batch.inputs);
  if (types_ != nullptr) {
    const auto types = batch.types.empty() ? zeros(tape, ids.size) : batch.types;
    x = add(tape, x, embedding(tape, TableRows{tape.parameter(*types_), types}));
  }
  x = dropout(tape, norm_.forward(tape, x), {config_.dropout, {key.seed, key.step, 0}}, rows);
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    if (!batch.hidden.empty()) batch.hidden[n] = x;
    key.layer = static_cast<std::uint32_t>(n);
    x = blocks_[n].forward(tape, x, rows, key,
                           batch.attention.empty() ? nullptr : &batch.attention[n]);
  }
  if (!batch.hidden.empty()) batch.hidden.back() = x;
  return {x, rows};
}

Variable BertLayers::pooled(Tape& tape, const BertRows& from) const {
  check(pooler_.has_value(), "bert: this one has no layer over the first rows");
  return pooler_->forward(tape, first_over_time(tape, from.rows, from.sequences), config_.pooled);
}

Variable BertLayers::logits(Tape& tape, const BertRows& from, Vec<const std::int32_t> at,
                            const DropoutKey& key) const {
  check(output_.has_value(), "bert: this one has no head");
  check(config_.head == BertHead::kTokens || at.empty(), "bert: the head reads texts, not tokens");
  // The number of its mask: that of a block behind the last one.
  const auto layer = static_cast<std::uint32_t>(config_.layers);
  const DropoutOptions dropped{config_.head_dropout,
                               key_of({key.seed, key.step, layer}, BlockMask::kWeights)};
  Variable x = from.rows;
  if (config_.head == BertHead::kText) {
    x = pooled(tape, from);
    const index texts = x.rows();
    auto* const offsets = tape.saved<std::int32_t>(texts + 1);
    std::iota(offsets, offsets + texts + 1, 0);
    x = dropout(tape, x, dropped,
                lay_out_rows(tape, texts, {offsets, texts + 1}, from.sequences.samples));
  } else {
    x = dropout(tape, x, dropped, from.sequences);
    if (!at.empty()) x = embedding(tape, TableRows{x, at});
  }
  return output_->forward(tape, x);
}

index parameter_count(const Bert& model) {
  index count = 0;
  for (const Parameter* parameter : model.parameters()) count += parameter->value.size();
  return count;
}

PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load);
  const PlannedRows rows(load, config.block, config.vocabulary);
  return plan(
      context, load, [&](const auto& options) { return Bert(config, options); },
      [&](Tape& tape, const Bert& model, std::span<HeadStatistics>) {
        const BertRows found = model.forward(tape, {.texts = rows.view()});
        return config.head == BertHead::kNone ? found.rows : model.logits(tape, found);
      });
}

}  // namespace fovea
