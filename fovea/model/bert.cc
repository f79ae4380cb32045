// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/bert.h"

#include <optional>

#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"

namespace fovea {

namespace {

NormOptions norm_of(const BertConfig& c) { return {.width = c.width, .epsilon = c.norm_epsilon}; }

BlockOptions block_of(const BertConfig& c) {
  BlockOptions o;
  o.attention.width = c.width;
  o.attention.heads = c.heads;
  o.attention.dropout = c.dropout;
  o.feed_forward = {.width = c.width, .hidden = c.ff, .activation = c.activation};
  o.residual = {.norm = norm_of(c), .position = NormPosition::kPost, .dropout = c.dropout};
  return o;
}

}  // namespace

struct Bert::Layers {
  Layers(const BertConfig& c, const ParameterScope& scope)
      : embedding({.vocabulary = c.vocabulary, .width = c.width, .positions = c.block},
                  scope["embedding"]),
        types(scope["types"].add("weight", {c.types, c.width}, Init::normal(kInitDeviation),
                                 Decay::kNo)),
        norm(norm_of(c), scope["embedding_norm"]) {
    const BlockOptions block = block_of(c);
    for (index n = 0; n < c.layers; ++n) blocks.emplace_back(block, scope["blocks"][n]);
    if (c.pools) pooler.emplace(LinearOptions{.in = c.width, .out = c.width}, scope["pooler"]);
  }

  Embedding embedding;
  Parameter& types;
  NormLayer norm;
  std::vector<Block> blocks;
  std::optional<Linear> pooler;
};

Bert::Bert(const BertConfig& config, const ParameterSetOptions& options)
    : config_(config),
      parameters_(std::make_unique<ParameterSet>(options)),
      layers_(std::make_unique<Layers>(config_, ParameterScope(*parameters_))) {}

Bert::Bert(Bert&&) noexcept = default;
Bert& Bert::operator=(Bert&&) noexcept = default;
Bert::~Bert() = default;

BertRows Bert::forward(Tape& tape, const BertBatch& batch) const {
  const Vec<const std::int32_t> ids = batch.texts.ids;
  check(batch.types.empty() || batch.types.size == ids.size, "bert: {} types for {} tokens",
        batch.types.size, ids.size);
  check(batch.hidden.empty() || static_cast<index>(batch.hidden.size()) == config_.layers + 1,
        "bert: room for the rows of {} places; there are {}", batch.hidden.size(),
        config_.layers + 1);
  const PackedRows rows = lay_out_texts(tape, batch.texts, config_.block);
  Vec<const std::int32_t> types = batch.types;
  if (types.empty()) {
    auto* const first = tape.saved<std::int32_t>(ids.size);
    std::fill_n(first, ids.size, 0);
    types = {first, ids.size};
  }
  DropoutKey key = batch.dropout;
  Variable x = layers_->embedding.forward(tape, ids, rows);
  x = add(tape, x, embedding(tape, TableRows{tape.parameter(layers_->types), types}));
  x = dropout(tape, layers_->norm.forward(tape, x), {config_.dropout, {key.seed, key.step, 0}},
              rows);
  for (std::size_t n = 0; n < layers_->blocks.size(); ++n) {
    if (!batch.hidden.empty()) batch.hidden[n] = x;
    key.layer = static_cast<std::uint32_t>(n);
    x = layers_->blocks[n].forward(tape, x, rows, key);
  }
  if (!batch.hidden.empty()) batch.hidden.back() = x;
  return {x, rows};
}

Variable Bert::pooled(Tape& tape, const BertRows& from) const {
  check(layers_->pooler.has_value(), "bert: this one has no layer over the first rows");
  return layers_->pooler->forward(tape, first_over_time(tape, from.rows, from.sequences),
                                  Activation::kTanh);
}

PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load);
  const PlannedRows rows(load, config.block, config.vocabulary);
  return plan(
      context, load, [&](const auto& options) { return Bert(config, options); },
      [&](Tape& tape, const Bert& model, std::span<HeadStatistics>) {
        return model.forward(tape, {.texts = rows.view()}).rows;
      });
}

}  // namespace fovea
