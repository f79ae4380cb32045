// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/sentence_encoder.h"

#include "fovea/base/check.h"
#include "fovea/base/option.h"

namespace fovea {

SentenceEncoderConfig resolve(SentenceEncoderConfig c) {
  require_option(c.has_base(), "layers", c.base.layers, "1 or more: those of --base");
  check_layers(c);
  const bool knows = c.pooling == PoolingKind::kMean || c.pooling == PoolingKind::kMax ||
                     c.pooling == PoolingKind::kFirst;
  if (!knows) fail_option("pooling", to_string(c.pooling), "mean, max or first");
  take_layers(c, pretrained_layers(c));
  return c;
}

index parameter_count(const SentenceEncoderConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const SentenceEncoderLayers layers(resolve(config), ParameterScope(shapes));
  return shapes.size();
}

Variable pooled_rows(Tape& tape, PoolingKind kind, const BertRows& from) {
  if (kind == PoolingKind::kFirst) return first_over_time(tape, from.rows, from.sequences);
  if (kind == PoolingKind::kMax) return max_over_time(tape, from.rows, from.sequences);
  return mean_over_time(tape, from.rows, from.sequences);
}

Variable SentenceEncoderLayers::vectors(Tape& tape, const TextRows& texts,
                                        const VectorOptions& options) const {
  return pooled_rows(
      tape, pooling_,
      layers_.forward(
          tape, {.texts = texts, .dropout = options.dropout, .attention = options.attention}));
}

PassCost plan_pass(const Context& context, const SentenceEncoderConfig& config,
                   const TapeLoad& load, const ModelChange<SentenceEncoder>& change) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load, change);
  const SentenceEncoderConfig c = resolve(config);
  const PlannedRows rows(load, c.block, c.vocabulary);
  return plan_changed<SentenceEncoder>(
      context, load, [&](const auto& options) { return SentenceEncoder(c, options); }, change,
      [&](Tape& tape, const SentenceEncoder& model, std::span<HeadStatistics> seen) {
        return sum(tape, model.vectors(tape, rows.view(), {.attention = seen}));
      });
}

}  // namespace fovea
