// SPDX-License-Identifier: Apache-2.0
// The layers of a language model. The memory of their parameters is elsewhere, so they can also be
// built from shapes alone, to count parameters.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fovea/model/encoder_sizes.h"
#include "fovea/model/language_model_config.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/norm.h"

namespace fovea {

/// `config` must be resolved. Parameters, in this order: embedding.*; blocks.N.* of a Transformer,
/// encoder.N.* of other models (encoder.N.B.* and encoder.N.join.* where layers lie side by side);
/// norm.* (pre-norm models with residual sums), output.weight [V, C] (unless tied) and output.bias
/// [V] (untied models with biases).
class LanguageModelLayers {
 public:
  LanguageModelLayers(const LanguageModelConfig& config, const ParameterScope& scope);

  /// The last hidden states [N, C], from which the next tokens are predicted. `seen` is empty, or
  /// has an element for each of attentions().
  Variable hidden(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                  const DropoutKey& key, std::span<HeadStatistics> seen) const;
  /// The same for the newest tokens of one sequence; the session has its earlier ones.
  Variable hidden(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                  EncoderSession& session) const;

  Parameter& output_weight() const { return output_ ? output_->weight() : embedding_.tokens(); }
  Parameter* output_bias() const { return output_ ? output_->bias() : nullptr; }

  index attentions() const { return encoder_.attentions(); }
  /// A sequence that begins. Its positions, and the keys of its attention, go to `capacity`.
  EncoderSession begin(index capacity) const { return encoder_.begin(capacity); }
  /// Whether the tokens have positions of their own, of which there are only so many.
  bool has_position_rows() const { return embedding_.has_positions(); }

 private:
  Variable finish(Tape& tape, Variable x) const { return norm_ ? norm_->forward(tape, x) : x; }

  double dropout_;
  Embedding embedding_;
  Encoder encoder_;
  std::optional<NormLayer> norm_;
  std::optional<Linear> output_;
};

}  // namespace fovea
