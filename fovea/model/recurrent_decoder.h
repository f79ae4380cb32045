// SPDX-License-Identifier: Apache-2.0
// The recurrent decoder of a translator: embeddings of the target, and a GRU that attends to the
// source before each step (nn/attentive_gru.h; Bahdanau et al. 2015, appendix A.2.2).
#pragma once

#include <memory>

#include "fovea/model/encoder_config.h"
#include "fovea/model/target_decoder.h"
#include "fovea/nn/attentive_gru.h"
#include "fovea/nn/embedding.h"

namespace fovea {

/// Parameters, in this order: embedding.tokens, unless it is shared; gru.* of AttentiveGru.
class RecurrentDecoder final : public TargetDecoder {
 public:
  /// `config` must be resolved. `source_width`: columns of the rows of the source. `tokens`: the
  /// table of the tokens, if it is shared; null: one of its own.
  RecurrentDecoder(const EncoderConfig& config, index source_width, Parameter* tokens,
                   const ParameterScope& scope);

  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                   const TargetCall& call) const override;
  std::unique_ptr<Decoding> decoding() const override;
  Parameter& tokens() const override { return embedding_.tokens(); }
  index attentions() const override { return 1; }
  index cross_attention(index) const override { return 0; }

  /// For decoding(): the embeddings of tokens, and what reads them.
  Variable embed(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows) const {
    return embedding_.forward(tape, ids, rows);
  }
  const AttentiveGru& gru() const { return gru_; }

 private:
  double dropout_;
  Embedding embedding_;
  AttentiveGru gru_;
};

}  // namespace fovea
