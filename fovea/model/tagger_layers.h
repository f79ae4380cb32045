// SPDX-License-Identifier: Apache-2.0
// The layers of a tagger. The memory of their parameters is elsewhere, so they can also be built
// from shapes alone, to count parameters.
#pragma once

#include <optional>
#include <span>

#include "fovea/model/tagger_config.h"
#include "fovea/model/text_encoder.h"
#include "fovea/model/word_batch.h"
#include "fovea/nn/convolution.h"
#include "fovea/nn/crf.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/nn/frame_embedding.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/recurrent.h"

namespace fovea {

/// Reads the characters of words, all words of a batch at once. Parameters: table.tokens
/// [characters, character_width]; window.* of ConvolutionLayer, or states.* of RecurrentLayers.
class CharacterLayers {
 public:
  CharacterLayers(const TaggerConfig& config, const ParameterScope& scope);

  /// [words, character_features]; a word without characters gives zeros.
  Variable forward(Tape& tape, Vec<const std::int32_t> characters,
                   Vec<const std::int32_t> offsets) const;

 private:
  Embedding table_;
  std::optional<ConvolutionLayer> window_;
  std::optional<RecurrentLayers> states_;
};

/// `config` must be resolved. Parameters, in this order, those of what the configuration has:
/// words.tokens [vocabulary, word_width]; characters.*; shapes.tokens; ngrams.weight
/// [buckets, ngram_width]; input.* of FrameEmbedding; those of TextEncoder; output.weight
/// [tags, width], output.bias; crf.* of Crf.
class TaggerLayers {
 public:
  TaggerLayers(const TaggerConfig& config, const CrfRules& rules, const ParameterScope& scope);

  /// The rows of `rows`, each sentence a sequence.
  PackedRows lay_out(Tape& tape, const WordRows& rows) const;
  /// The scores [N, tags] of each word by itself. `seen` is empty, or has an element for each
  /// attention of the encoder.
  Variable logits(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                  const DropoutKey& key, std::span<HeadStatistics> seen) const;

  index attentions() const { return encoder_.attentions(); }
  /// Null with TagHead::kSoftmax.
  const Crf* crf() const { return crf_ ? &*crf_ : nullptr; }

 private:
  Variable describe(Tape& tape, const WordRows& rows) const;
  Variable ngrams(Tape& tape, const WordRows& rows) const;

  const TaggerConfig config_;
  std::optional<Embedding> words_;
  std::optional<CharacterLayers> characters_;
  std::optional<Embedding> shapes_;
  std::optional<EmbeddingBag> ngrams_;
  FrameEmbedding input_;
  TextEncoder encoder_;
  Linear output_;
  std::optional<Crf> crf_;
};

}  // namespace fovea
