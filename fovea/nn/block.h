// SPDX-License-Identifier: Apache-2.0
// The layers of a Transformer: a block of attention and feed-forward network, and that of a
// decoder.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "fovea/nn/attention.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/experts.h"
#include "fovea/nn/feed_forward.h"
#include "fovea/nn/norm.h"

namespace fovea {

// One layer of a Transformer: attention and feed-forward network, each in a residual connection
// with norms where NormPosition says.

struct ResidualOptions {
  NormOptions norm;  ///< its width is that of the rows
  NormPosition position = NormPosition::kPre;
  double dropout = 0;  ///< of f's result, before it is added
};

/// kPre: x + dropout(f(norm(x))); kPost: norm(x + dropout(f(x))); kSandwich: x +
/// dropout(after(f(norm(x)))). Parameters: those of the norm; with kSandwich after.*, of the other.
class Residual {
 public:
  Residual(const ResidualOptions& options, const ParameterScope& norm_scope)
      : options_(options), norm_(options.norm, norm_scope) {
    if (options.position == NormPosition::kSandwich)
      after_.emplace(options.norm, norm_scope["after"]);
  }

  template <class F>
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                   F&& f) const {
    const DropoutOptions dropout{options_.dropout, key};
    if (options_.position == NormPosition::kPost) {
      return norm_.forward(tape, residual(tape, x, f(x), dropout, rows));
    }
    Variable added = f(norm_.forward(tape, x));
    if (after_) added = after_->forward(tape, added);
    return residual(tape, x, added, dropout, rows);
  }

 private:
  ResidualOptions options_;
  NormLayer norm_;
  std::optional<NormLayer> after_;  // of kSandwich
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
  std::optional<ExpertsOptions> experts = {};  ///< in the place of the feed-forward network
};

/// Attention, then feed-forward. Parameters: attention.*, attention_norm.*, feed_forward.* (those
/// of FeedForward or Experts), feed_forward_norm.*.
class Block final : public EncoderLayer {
 public:
  Block(const BlockOptions& options, const ParameterScope& scope);

  index width() const override { return attention().options().width; }
  index attentions() const override { return 1; }
  Variable forward(Tape& tape, Variable x, const EncoderCall& call) const override {
    return forward(tape, x, call.rows, call.key, call.only_seen());
  }
  std::unique_ptr<LayerSession> begin(index capacity) const override;

  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key = {},
                   HeadStatistics* seen = nullptr) const;
  Variable forward(Tape& tape, Variable x, KvCache& cache) const;

  const MultiHeadAttention& attention() const { return attention_.attention(); }

 private:
  Variable feed_forward(Tape& tape, Variable x, const PackedRows& rows,
                        const DropoutKey& key) const;

  AttentionBlock attention_;
  std::variant<FeedForward, Experts> feed_forward_;
  Residual residual_;
};

// One layer of the decoder of an encoder-decoder Transformer (Vaswani et al. 2017, section 3.1):
// self-attention, attention to the source, and a feed-forward network, each in a residual
// connection with a norm.

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
