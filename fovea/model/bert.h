// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2019) and the encoders that came of it: a Transformer whose blocks normalise
// behind each sum, over tokens with learned positions and, mostly, types; with or without a head
// that says of a text, or of each token, how probable labels are.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
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
  index outputs = 0;   ///< of the head
  double dropout = 0;  ///< in training, of the embeddings, in the blocks and before the head

  index position_rows() const { return padding + 1 + block; }
};

struct BertBatch {
  TextRows texts;                      ///< with their marks
  Vec<const std::int32_t> types = {};  ///< [N] of the tokens; empty: 0
  std::span<Variable> hidden = {};  ///< [layers + 1], set to the rows below each block, and above
  DropoutKey dropout = {};
};

struct BertRows {
  Variable rows;  ///< [N, width]
  PackedRows sequences;
};

/// Parameters, in this order: embedding.tokens, embedding.positions; with types, types.weight;
/// embedding_norm.*; with buckets, distances.weight [buckets, heads]; blocks.N.* (nn/block.h); with
/// `pools`, pooler.*; with a head, output.*.
class Bert {
 public:
  /// Throws Error(kShape).
  explicit Bert(const BertConfig& config, const ParameterSetOptions& options = {});
  Bert(Bert&&) noexcept;
  Bert& operator=(Bert&&) noexcept;
  ~Bert();

  const BertConfig& config() const { return config_; }
  std::span<Parameter* const> parameters() const { return parameters_->parameters(); }
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
  struct Layers;

  BertConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const Layers> layers_;
};

/// The number of learned values.
index parameter_count(const Bert& model);

/// The cost of its rows and of what its head says of them, in inference alone.
PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load);

}  // namespace fovea
