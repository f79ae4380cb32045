// SPDX-License-Identifier: Apache-2.0
// BERT (Devlin et al. 2019): a Transformer whose blocks normalise behind each sum, over tokens with
// learned positions and types. It is what sentence encoders are made of.
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

struct BertConfig {
  index vocabulary = 0;
  index width = 0;
  index layers = 0;
  index heads = 0;
  index ff = 0;
  index block = 0;  ///< rows of the table of positions: the length of the longest text
  index types = 2;  ///< of tokens: the first text of a pair, and the second
  double norm_epsilon = 1e-12;
  LayerActivation activation = LayerActivation::kGelu;
  bool pools = false;  ///< has the layer over the first row of each text
  double dropout = 0;  ///< in training, of the embeddings and in the blocks
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

/// Parameters, in this order: embedding.tokens, embedding.positions, types.weight,
/// embedding_norm.*; blocks.N.* (nn/block.h); with `pools`, pooler.*.
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
  /// [texts, width]: tanh(W x + b) of the first row of each text. Only with `pools`.
  Variable pooled(Tape& tape, const BertRows& from) const;

 private:
  struct Layers;

  BertConfig config_;
  std::unique_ptr<ParameterSet> parameters_;
  std::unique_ptr<const Layers> layers_;
};

/// The cost of its rows, in inference alone.
PassCost plan_pass(const Context& context, const BertConfig& config, const TapeLoad& load);

}  // namespace fovea
