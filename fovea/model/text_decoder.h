// SPDX-License-Identifier: Apache-2.0
// The decoder of a translator: embeddings of the target and the blocks that read them and the
// source. The memory of their parameters is elsewhere, so they can also be built from shapes alone,
// to count parameters.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fovea/model/encoder_config.h"
#include "fovea/model/target_decoder.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/norm.h"

namespace fovea {

struct TextDecoderOptions {
  index layers = 1;
  index source_width = 0;       ///< columns of the rows of the source
  Parameter* tokens = nullptr;  ///< the table of the tokens, if it is shared; null: one of its own
};

/// Parameters, in this order: embedding.*; blocks.N.* of DecoderBlock; norm.* (pre-norm models).
class TextDecoder final : public TargetDecoder {
 public:
  /// `config` must be resolved, and its sight kPast.
  TextDecoder(const EncoderConfig& config, const TextDecoderOptions& options,
              const ParameterScope& scope);

  /// `call.seen`: of each block to the target, then to the source.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                   const TargetCall& call) const override;
  std::unique_ptr<Decoding> decoding() const override;

  /// For TextDecoding: the embeddings, the blocks, and what comes behind these.
  Variable embed(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows) const {
    return embedding_.forward(tape, ids, rows);
  }
  std::span<const DecoderBlock> blocks() const { return blocks_; }
  Variable finish(Tape& tape, Variable x) const { return norm_ ? norm_->forward(tape, x) : x; }

  Parameter& tokens() const override { return embedding_.tokens(); }
  index attentions() const override { return 2 * static_cast<index>(blocks_.size()); }
  index cross_attention(index layer) const override { return 2 * layer + 1; }

 private:
  double dropout_;
  Embedding embedding_;
  std::vector<DecoderBlock> blocks_;
  std::optional<NormLayer> norm_;
};

}  // namespace fovea
