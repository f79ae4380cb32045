// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/source_encoder.h"

namespace fovea {

SourceEncoderLayers::SourceEncoderLayers(const SourceEncoderConfig& config,
                                         const ParameterScope& scope)
    : block_(config.translator.block),
      encoder_(encoder_of(config.translator), encoder_stages(config.translator), scope["encoder"],
               "blocks") {}

BertRows SourceEncoderLayers::forward(Tape& tape, const TextRows& texts) const {
  const PackedRows rows = lay_out_texts(tape, texts, block_);
  return {.rows = encoder_.forward(tape, texts.ids, rows, DropoutKey{}, {}), .sequences = rows};
}

PassCost plan_pass(const Context& context, const SourceEncoderConfig& config,
                   const TapeLoad& load) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load);
  const TranslatorConfig& c = config.translator;
  const PlannedRows rows(load, c.block, c.vocabulary);
  return plan(
      context, load, [&](const auto& options) { return SourceEncoder(config, options); },
      [&](Tape& tape, const SourceEncoder& model, std::span<HeadStatistics>) {
        return model.forward(tape, rows.view()).rows;
      });
}

}  // namespace fovea
