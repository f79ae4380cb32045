// SPDX-License-Identifier: Apache-2.0
// The part of a translator that reads the source, alone: the encoder of a T5.
#pragma once

#include <span>

#include "fovea/model/bert.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/model/translator.h"

namespace fovea {

struct SourceEncoderConfig {
  TranslatorConfig translator;
};

inline SourceEncoderConfig resolve(const SourceEncoderConfig& config) {
  return {.translator = resolve(config.translator)};
}

/// Parameters: those of TranslatorLayers that begin with "encoder.".
class SourceEncoderLayers {
 public:
  /// `config` must be resolved.
  SourceEncoderLayers(const SourceEncoderConfig& config, const ParameterScope& scope);

  index attentions() const { return encoder_.attentions(); }
  /// Throws Error(kShape) for a text longer than `block`, or a token that there is not.
  BertRows forward(Tape& tape, const TextRows& texts) const;

 private:
  index block_;
  TextEncoder encoder_;
};

class SourceEncoder : public ModelOf<SourceEncoderConfig, SourceEncoderLayers> {
 public:
  using ModelOf::ModelOf;

  // As SourceEncoderLayers.
  BertRows forward(Tape& tape, const TextRows& texts) const {
    return layers().forward(tape, texts);
  }
};

/// The cost of its rows, in inference alone.
PassCost plan_pass(const Context& context, const SourceEncoderConfig& config, const TapeLoad& load);

}  // namespace fovea
