// SPDX-License-Identifier: Apache-2.0
// The layers of a text classifier. The memory of their parameters is elsewhere, so they can also be
// built from shapes alone, to count parameters.
#pragma once

#include <optional>

#include "fovea/model/classifier_config.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/pooling.h"

namespace fovea {

/// The observers of a forward: see ClassifierLossOptions.
struct ClassifierView {
  std::span<HeadStatistics> attention = {};
  Variable* inputs = nullptr;
  Variable* ngrams = nullptr;
};

/// `config` must be resolved. Parameters, in this order: with features input.* of FrameEmbedding;
/// those of TextEncoder; segments.tokens [2, width] (cross-encoders of pairs); pooling.query
/// (attention); ngrams.weight [buckets, ngram_width], if there are n-grams; output.weight [logits,
/// F], output.bias [logits]. F is width + ngram_width; four times as many with a bi-encoder.
class ClassifierLayers {
 public:
  ClassifierLayers(const ClassifierConfig& config, const ParameterScope& scope);

  /// The logits [sequences, logit_count()].
  Variable logits(Tape& tape, const TextRows& texts, const DropoutKey& key,
                  const ClassifierView& view) const;
  /// The logits by TextEncoder::token_table(), for an inference tape.
  Variable logits(Tape& tape, const TextRows& texts, const Tensor& token_table) const;
  const TextEncoder& encoder() const { return encoder_; }
  /// Of TextEncoder; 0 if what a token becomes depends on its segment.
  index token_table_columns() const { return segments_ ? 0 : encoder_.token_table_columns(); }
  /// With attention as pooling: the weight of each token [N] in its text, for an inference tape;
  /// for rows of numbers with joints [joints x N], as lay_out_frames() has them.
  std::vector<double> token_weights(Tape& tape, const TextRows& texts) const;

  index attentions() const { return encoder_.attentions(); }

 private:
  // The rows that are pooled, and which of them belong to a text.
  struct Encoded {
    Variable x;
    PackedRows texts;
  };

  Encoded encode(Tape& tape, const TextRows& texts, const DropoutKey& key,
                 const ClassifierView& view) const;
  Variable features(Tape& tape, const TextRows& texts, const DropoutKey& key,
                    const ClassifierView& view) const;

  Variable ngrams(Tape& tape, const TextRows& texts, Variable* inputs) const;
  Variable with_ngrams(Tape& tape, Variable pooled, const TextRows& texts,
                       Variable* inputs = nullptr) const;

  // The sequences that the encoder reads: the texts or, with a bi-encoder, both texts of each pair.
  TextRows read_apart(Tape& tape, const TextRows& texts) const;
  Vec<const std::int32_t> segments_of(Tape& tape, const TextRows& texts) const;
  Variable compared(Tape& tape, Variable features) const;

  index block_, joints_, frame_features_;
  std::int32_t separator_;  // of pairs; -1: none
  bool is_bi_;
  index longest_, buckets_;  // of the n-grams
  double dropout_;
  std::optional<FrameEmbedding> frames_;
  TextEncoder encoder_;
  std::optional<Embedding> segments_;
  Pooling pooling_;
  std::optional<EmbeddingBag> ngrams_;
  Linear output_;
};

}  // namespace fovea
