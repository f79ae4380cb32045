// SPDX-License-Identifier: Apache-2.0
// The decoder that writes the target of a translator: a Transformer, or a recurrent network with
// attention. The memory of their parameters is elsewhere, so they can also be built from shapes
// alone, to count parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/parameter.h"
#include "fovea/model/encoder_config.h"
#include "fovea/nn/attentive_gru.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/norm.h"

namespace fovea {

/// Rows of the source [M, W] and which of them are a sentence.
struct SourceRows {
  Variable rows;
  PackedRows sentences;
};

struct TargetCall {
  const PackedRows& rows;               ///< of the target: as many sentences as the source has
  DropoutKey key = {};                  ///< `layer` is not read
  std::span<HeadStatistics> seen = {};  ///< empty, or [attentions()]
};

/// The values of a variable, in memory of their own, for the steps to come.
inline Tensor copy_of(Variable x) {
  Tensor copy = Tensor::empty({x.rows(), x.columns()}, x.dtype());
  with_type(x.dtype(), [&]<class T>(std::type_identity<T>) {
    const Rows<const T> from = x.value<T>();
    for (index n = 0; n < from.rows; ++n) std::copy_n(from[n], from.columns, copy.rows<T>()[n]);
  });
  return copy;
}

/// Hypotheses of many sentences, a token more of each in every step. Belongs to one thread.
class Decoding {
 public:
  virtual ~Decoding() = default;

  /// Begins with a hypothesis for each sentence of the source, in which nothing is written.
  virtual void begin(Tape& tape, const SourceRows& source) = 0;
  /// Hypothesis i becomes what parents[i] was, with ids[i] behind it. Returns the rows [N, width]
  /// that predict what follows.
  virtual Variable step(Tape& tape, std::span<const index> parents,
                        Vec<const std::int32_t> ids) = 0;
};

class TargetDecoder {
 public:
  virtual ~TargetDecoder() = default;

  /// The rows [N, width] of the tokens of the target, each of which sees those before it and all of
  /// its source.
  virtual Variable forward(Tape& tape, Vec<const std::int32_t> ids, const SourceRows& source,
                           const TargetCall& call) const = 0;
  /// The decoder must outlive it, and not change between two calls of begin().
  virtual std::unique_ptr<Decoding> decoding() const = 0;

  /// The table of the tokens.
  virtual Parameter& tokens() const = 0;
  virtual index attentions() const = 0;
  /// Which of these is the attention of a layer to the source.
  virtual index cross_attention(index layer) const = 0;
};

/// The paths of hypotheses through the rows of a table: hypotheses with a common beginning share
/// its rows, so that to copy or reorder them moves numbers of rows, not rows.
class RowPool {
 public:
  /// Forgets all paths; there are `count` empty ones.
  void begin(index count);

  /// Path i becomes what path parents[i] was, with a row more: one that no path has. Returns these
  /// rows, which lie below room() then. A parent may have any number of children; paths without
  /// children are gone.
  std::span<const std::int32_t> extend(std::span<const index> parents);

  index size() const { return static_cast<index>(paths_.size()); }
  std::span<const std::int32_t> path(index i) const { return paths_[static_cast<std::size_t>(i)]; }
  /// The rows that a table needs.
  index room() const { return room_; }

 private:
  void find_free();

  std::vector<std::vector<std::int32_t>> paths_;
  std::vector<std::int32_t> free_;    // rows that no path has, the lowest last
  std::vector<std::int32_t> newest_;  // those of the last call
  index room_ = 0;
};

/// Embeddings of the target, and a GRU that attends to the source before each step
/// (nn/attentive_gru.h; Bahdanau et al. 2015, appendix A.2.2).
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

struct TextDecoderOptions {
  index layers = 1;
  index source_width = 0;       ///< columns of the rows of the source
  Parameter* tokens = nullptr;  ///< the table of the tokens, if it is shared; null: one of its own
};

/// Embeddings of the target, and the blocks that read them and the source.
/// Parameters, in this order: embedding.*; distances.weight (shared_distances() of layer_table.h);
/// blocks.N.* of DecoderBlock; norm.* (pre-norm models).
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

/// Keys and values of all layers are kept, of the source once for a sentence, of the target once
/// for hypotheses that share them. Belongs to one thread.
class TextDecoding final : public Decoding {
 public:
  /// The decoder must outlive it, and not change between two calls of begin().
  explicit TextDecoding(const TextDecoder& decoder) : decoder_(decoder) {}

  void begin(Tape& tape, const SourceRows& source) override;

  /// The bits of a row depend on its hypothesis and its source alone,
  /// and are those of TextDecoder::forward() wherever attention has parts; else they agree to
  /// rounding.
  Variable step(Tape& tape, std::span<const index> parents, Vec<const std::int32_t> ids) override;

  index size() const { return pool_.size(); }
  /// The sentence of a hypothesis.
  index sentence(index i) const { return sentences_[static_cast<std::size_t>(i)]; }

 private:
  // Keys and values of one layer.
  struct Layer {
    Tensor keys, values;                // [pool, ...] of the target
    Tensor source_keys, source_values;  // [rows of the source, ...]
  };

  void make_room();
  void choose(std::span<const index> parents);
  PackedRows lay_out(Tape& tape) const;

  const TextDecoder& decoder_;
  RowPool pool_;
  std::vector<Layer> layers_;
  std::vector<std::int32_t> source_offsets_;
  std::vector<index> sentences_;  // of the hypotheses
  // The rows of target and source that the hypotheses of a step attend to.
  std::vector<std::int32_t> ids_, offsets_, source_ids_, source_id_offsets_;
};

}  // namespace fovea
