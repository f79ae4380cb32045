// SPDX-License-Identifier: Apache-2.0
// Embeddings and the encoder that reads them: what every model of text begins with. The memory of
// their parameters is elsewhere, so they can also be built from shapes alone, to count parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/grad/tape.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/encoder.h"
#include "fovea/nn/norm.h"

namespace fovea {

/// The different tokens of a batch, of which texts repeat many: ids[n] is kept[places[n]]; `kept`
/// has each number once, in the order in which they first occur. Both live as long as the tape.
struct DistinctIds {
  Vec<const std::int32_t> kept, places;
};

DistinctIds distinct_ids(Tape& tape, Vec<const std::int32_t> ids);

/// Parameters, in this order: embedding.* (unless config.features > 0); distances.weight
/// (shared_distances() of layer_table.h); LAYERS.N.* (LAYERS.N.B.* and LAYERS.N.join.* where layers
/// lie side by side); norm.* (pre-norm models with residual sums).
/// LAYERS is "encoder" or "blocks".
class TextEncoder {
 public:
  /// `config` must be resolved.
  TextEncoder(const EncoderConfig& config, const std::vector<SizedStage>& stages,
              const ParameterScope& scope, std::string_view layers = "encoder");

  /// The rows [N, width] of the tokens. `seen` is empty, or has an element for each of
  /// attentions(); `inputs` as Embedding::forward() has it.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                   const DropoutKey& key, std::span<HeadStatistics> seen,
                   Variable* inputs = nullptr) const;
  /// The rows of the newest tokens of one sequence; the session has its earlier ones.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                   EncoderSession& session) const;

  /// The number of columns of token_table(), the result of the model's first step for every token.
  /// 0 if there is no such step, or if it depends on the token's position.
  index token_table_columns() const;
  /// [vocabulary, token_table_columns()]. Valid until a parameter changes.
  Tensor token_table(const Context& context) const;
  /// forward() by that table, for an inference tape: with the same bits, and without the work of
  /// the first step.
  Variable forward(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                   const Tensor& token_table) const;
  /// The embeddings [N, width] of the tokens, with their positions.
  Variable embed(Tape& tape, Vec<const std::int32_t> ids, const PackedRows& rows,
                 Variable* inputs = nullptr) const {
    return embedding_->forward(tape, ids, rows, inputs);
  }
  /// The rows from rows [N, width] of embeddings.
  Variable forward(Tape& tape, Variable x, const PackedRows& rows, const DropoutKey& key,
                   std::span<HeadStatistics> seen) const;

  index width() const { return width_; }
  /// The table of the tokens.
  Parameter& tokens() const { return embedding_->tokens(); }
  index attentions() const { return encoder_.attentions(); }
  /// A sequence that begins. Its positions, and the keys of its attention, go to `capacity`.
  EncoderSession begin(index capacity) const { return encoder_.begin(capacity); }
  /// Whether the tokens have positions of their own, of which there are only so many.
  bool has_position_rows() const { return embedding_->has_positions(); }

 private:
  Variable project_tokens_once(Tape& tape, Vec<const std::int32_t> ids,
                               const PackedRows& rows) const;
  Variable finish(Tape& tape, Variable x) const { return norm_ ? norm_->forward(tape, x) : x; }

  double dropout_;
  index width_;
  std::optional<Embedding> embedding_;  // unless the configuration has features
  bool projects_tokens_once_;           // in training
  Encoder encoder_;
  std::optional<NormLayer> norm_;
};

}  // namespace fovea
