// SPDX-License-Identifier: Apache-2.0
#include "fovea/nn/block.h"

namespace fovea {

AttentionBlock::AttentionBlock(const MultiHeadAttentionOptions& attention,
                               const ResidualOptions& residual, const ParameterScope& scope)
    : attention_(attention, scope["attention"]), residual_(residual, scope["attention_norm"]) {}

Variable AttentionBlock::forward(Tape& tape, Variable x, const PackedRows& rows,
                                 const DropoutKey& key, HeadStatistics* seen) const {
  return residual_.forward(tape, x, rows, key_of(key, BlockMask::kAttention), [&](Variable y) {
    return attention_.forward(tape, y, rows, key_of(key, BlockMask::kWeights), seen);
  });
}

Variable AttentionBlock::forward(Tape& tape, Variable x, KvCache& cache) const {
  return residual_.forward(tape, x, {}, {},
                           [&](Variable y) { return attention_.forward(tape, y, cache); });
}

Block::Block(const BlockOptions& options, const ParameterScope& scope)
    : attention_(options.attention, options.residual, scope),
      feed_forward_(options.feed_forward, scope["feed_forward"]),
      residual_(options.residual, scope["feed_forward_norm"]) {}

Variable Block::forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                        HeadStatistics* seen) const {
  return feed_forward(tape, attention_.forward(tape, x, rows, key, seen), rows, key);
}

Variable Block::forward(Tape& tape, Variable x, KvCache& cache) const {
  return feed_forward(tape, attention_.forward(tape, x, cache), {}, {});
}

Variable Block::feed_forward(Tape& tape, Variable x, const PackedRows& rows,
                             const DropoutKey& key) const {
  return residual_.forward(tape, x, rows, key_of(key, BlockMask::kFeedForward),
                           [&](Variable y) { return feed_forward_.forward(tape, y); });
}

}  // namespace fovea
