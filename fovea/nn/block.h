// SPDX-License-Identifier: Apache-2.0
// One layer of a Transformer: attention and feed-forward network, each in a residual connection
// with a norm before it (Xiong et al. 2020) or after the sum (Vaswani et al. 2017, section 3.1).
#pragma once

#include "fovea/nn/attention.h"
#include "fovea/nn/feed_forward.h"
#include "fovea/nn/norm.h"

namespace fovea {

struct ResidualOptions {
  NormOptions norm;  ///< its width is that of the rows
  NormPosition position = NormPosition::kPre;
  double dropout = 0;  ///< of f's result, before it is added
};

/// kPre: x + dropout(f(norm(x))); kPost: norm(x + dropout(f(x))).
class Residual {
 public:
  Residual(const ResidualOptions& options, const ParameterScope& norm_scope)
      : options_(options), norm_(options.norm, norm_scope) {}

  template <class F>
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                   F&& f) const {
    const DropoutOptions dropout{options_.dropout, key};
    if (options_.position == NormPosition::kPre) {
      return residual(tape, x, f(norm_.forward(tape, x)), dropout, rows);
    }
    return norm_.forward(tape, residual(tape, x, f(x), dropout, rows));
  }

 private:
  ResidualOptions options_;
  NormLayer norm_;
};

/// The dropout masks of one block, numbered so that no two masks of a model have the same number: 0
/// is that of the embedding.
enum class BlockMask : std::uint32_t { kWeights = 1, kAttention = 2, kFeedForward = 3 };
/// `block.layer` is the number of the block.
inline DropoutKey key_of(const DropoutKey& block, BlockMask mask) {
  return {block.seed, block.step, 4 * block.layer + static_cast<std::uint32_t>(mask)};
}

/// Multi-head self-attention with residual connection and norm inside: a Block without its
/// feed-forward network. Parameters: attention.*, attention_norm.*.
class AttentionBlock {
 public:
  AttentionBlock(const MultiHeadAttentionOptions& attention, const ResidualOptions& residual,
                 const ParameterScope& scope);

  /// `key.layer` is the number of the block; each dropout mask in the block derives its own number
  /// from it.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key = {},
                   HeadStatistics* seen = nullptr) const;
  /// For generation: x holds the newest rows of one sequence.
  Variable forward(Tape& tape, Variable x, KvCache& cache) const;

  const MultiHeadAttention& attention() const { return attention_; }
  const Residual& residual() const { return residual_; }

 private:
  MultiHeadAttention attention_;
  Residual residual_;
};

struct BlockOptions {
  MultiHeadAttentionOptions attention;
  FeedForwardOptions feed_forward;
  ResidualOptions residual;
};

/// Attention, then feed-forward. Parameters: attention.*, attention_norm.*, feed_forward.*,
/// feed_forward_norm.*.
class Block {
 public:
  Block(const BlockOptions& options, const ParameterScope& scope);

  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key = {},
                   HeadStatistics* seen = nullptr) const;
  Variable forward(Tape& tape, Variable x, KvCache& cache) const;

  const MultiHeadAttention& attention() const { return attention_.attention(); }

 private:
  Variable feed_forward(Tape& tape, Variable x, const PackedRows& rows,
                        const DropoutKey& key) const;

  AttentionBlock attention_;
  FeedForward feed_forward_;
  Residual residual_;
};

}  // namespace fovea
