// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2019) and the encoders that came of it: a Transformer whose blocks normalise
// behind each sum, over tokens with learned positions and, mostly, types; with or without a head
// that says of a text, or of each token, how probable labels are.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/nn/block.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
#include "fovea/nn/options.h"

namespace fovea {

/// The layers that stand on the rows.
enum class BertHead : std::uint8_t {
  kNone,
  kText,    ///< a linear layer on the pooled first row: numbers of each text
  kTokens,  ///< a linear layer on each row: numbers of each token
};

struct BertConfig {
  index vocabulary = 0;
  index width = 0;
  index layers = 0;
  index heads = 0;
  index ff = 0;
  index block = 0;  ///< the length of the longest text
  index types = 2;  ///< of tokens: the first text of a pair, and the second; 0: there are none
  /// RoBERTa: the id of a token that has no position, but its own row of their table; the positions
  /// of the others count from the next row on. -1: every token has a position, from row 0 on.
  std::int32_t padding = -1;
  /// MPNet: scores have a bias by the bucket of the distance (T5's), which all blocks share; 0:
  /// none.
  index buckets = 0;
  double norm_epsilon = 1e-12;
  LayerActivation activation = LayerActivation::kGelu;
  bool pools = false;  ///< has the layer over the first row of each text
  Activation pooled = Activation::kTanh;
  BertHead head = BertHead::kNone;
  index outputs = 0;        ///< of the head
  double dropout = 0;       ///< in training, of the embeddings and in the blocks
  double head_dropout = 0;  ///< in training, before the head

  index position_rows() const { return padding + 1 + block; }
  friend bool operator==(const BertConfig&, const BertConfig&) = default;
};

/// The layers that a configuration has of a model from elsewhere (EncoderConfig::base), without a
/// head.
BertConfig pretrained_layers(const EncoderConfig& config);
/// Takes these into a configuration; its head is left out.
void take_layers(EncoderConfig& config, const BertConfig& layers);
/// Throws kOptionValue unless the sizes of such a configuration go together.
void check_layers(const EncoderConfig& config);

struct BertBatch {
  TextRows texts;                      ///< with their marks
  Vec<const std::int32_t> types = {};  ///< [N] of the tokens; empty: 0
  std::span<Variable> hidden = {};  ///< [layers + 1], set to the rows below each block, and above
  DropoutKey dropout = {};
  /// Empty, or [layers]: what the attention of each block adds to.
  std::span<HeadStatistics> attention = {};
  Variable* inputs = nullptr;  ///< as Embedding::forward() has it
};

struct BertRows {
  Variable rows;  ///< [N, width]
  PackedRows sequences;
};

/// Parameters, in this order: embedding.tokens, embedding.positions; with types, types.weight;
/// embedding_norm.*; with buckets, distances.weight [buckets, heads]; blocks.N.* (nn/block.h); with
/// `pools`, pooler.*; with a head, output.*.
class BertLayers {
 public:
  BertLayers(const BertConfig& config, const ParameterScope& scope);

  index attentions() const { return config_.layers; }

  /// Throws Error(kShape) for a text longer than `block`, or a token or type that there is not.
  BertRows forward(Tape& tape, const BertBatch& batch) const;
  /// [texts, width]: tanh(W x + b) of the first row of each text, or another activation of it. Only
  /// with `pools`.
  Variable pooled(Tape& tape, const BertRows& from) const;
  /// The outputs of the head: [texts, outputs], or [N, outputs] of the tokens, or of those in the
  /// rows `at` alone. Only with a head.
  Variable logits(Tape& tape, const BertRows& from, Vec<const std::int32_t> at = {},
                  const DropoutKey& key = {}) const;

 private:
  const BertConfig config_;
  Embedding embedding_;
  Parameter* types_;  // null: there are none
  NormLayer norm_;
  std::vector<Block> blocks_;
  std::optional<Linear> pooler_, output_;
};

/// Whether a parameter of this name is one of BertLayers, but of no head.
bool is_of_layers(std::string_view parameter);

/// A configuration of BERT has all of its sizes.
inline const BertConfig& resolve(const BertConfig& config) { return config; }

class Bert : public ModelOf<BertConfig, BertLayers> {
 public:
  /// Throws Error(kShape).
  explicit Bert(const BertConfig& config, const ParameterSetOptions& options = {})
      : ModelOf(config, options) {}

  // As BertLayers.
  BertRows forward(Tape& tape, const BertBatch& batch) const {
    return layers().forward(tape, batch);
  }
  Variable pooled(Tape& tape, const BertRows& from) const { return layers().pooled(tape, from); }
  Variable logits(Tape& tape, const BertRows& from, Vec<const std::int32_t> at = {},
                  const DropoutKey& key = {}) const {
    return layers().logits(tape, from, at, key);
  }
};

/// The number of learned values.
index parameter_count(const Bert& model);

/// The cost of its rows and of what its head says of them, in inference alone.
PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load);

}  // namespace fovea
