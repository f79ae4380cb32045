// SPDX-License-Identifier: Apache-2.0
// One layer of the decoder of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.1):
// self-attention, attention to the source, and a feed-forward network, each in a residual
// connection with a norm.
#pragma once

#include <span>

#include "fovea/nn/block.h"

namespace fovea {

struct DecoderBlockOptions {
  MultiHeadAttentionOptions attention;  ///< to the rows of the target
  MultiHeadAttentionOptions cross;      ///< to those of the source: its `context` is their width
  FeedForwardOptions feed_forward;
  ResidualOptions residual;
};

/// The inputs of a block beside its rows.
struct DecoderCall {
  const PackedRows& rows;  ///< of the target
  /// `layer` is the number of the block; it takes that and the next.
  DropoutKey key = {};
  /// Empty, or [2]: what self-attention and cross-attention add to.
  std::span<HeadStatistics> seen = {};
};

/// The inputs of a block in decoding: x holds the newest row of each of N hypotheses.
struct DecoderStep {
  Tensor& keys;                    ///< [M, G D] of all hypotheses
  Tensor& values;                  ///< [M, G Dv]
  Vec<const std::int32_t> places;  ///< [N] the rows of these in which those of x are put
  GatheredRows seen;               ///< of these, what each hypothesis sees: its own place last
  const GatheredContext& source;   ///< of cross-attention
};

/// Parameters: attention.*, attention_norm.*, cross.*, cross_norm.*, feed_forward.*,
/// feed_forward_norm.*.
class DecoderBlock {
 public:
  DecoderBlock(const DecoderBlockOptions& options, const ParameterScope& scope);

  /// The context of cross-attention, from the rows [M, context] of the source.
  AttentionContext context_of(Tape& tape, Variable source, const PackedRows& rows) const {
    return cross_.context_of(tape, source, rows);
  }
  /// x [N, C] -> [N, C]. The sequences of the context are as many as those of x.
  Variable forward(Tape& tape, Variable x, const AttentionContext& source,
                   const DecoderCall& call) const;
  /// forward() of the newest rows alone, on a tape for inference.
  Variable step(Tape& tape, Variable x, const DecoderStep& step) const;

  const MultiHeadAttention& attention() const { return attention_.attention(); }
  const MultiHeadAttention& cross() const { return cross_; }

 private:
  AttentionBlock attention_;
  MultiHeadAttention cross_;
  Residual cross_residual_;
  FeedForward feed_forward_;
  Residual residual_;
};

}  // namespace fovea
