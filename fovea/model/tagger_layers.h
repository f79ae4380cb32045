// SPDX-License-Identifier: Apache-2.0
// The layers of a tagger. The memory of their parameters is elsewhere, so they can also be built
// from shapes alone, to count parameters.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fovea/model/tagger_config.h"
#include "fovea/model/text_encoder.h"
#include "fovea/model/word_batch.h"
#include "fovea/model/word_features.h"
#include "fovea/nn/convolution.h"
#include "fovea/nn/crf.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
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

/// The head that chooses the tags of one column. Parameters: output.weight [tags, in], output.bias,
/// where `in` is not 0; linear.weight [linear_buckets, tags]; crf.* of Crf.
class TagHeadLayers {
 public:
  TagHeadLayers(const TaggerConfig& config, std::size_t column, index in, const CrfRules& rules,
                const ParameterScope& scope);

  /// x [N, in] and the features of each word (null: none) -> [N, tags], the scores of each word by
  /// itself. x is not read where `in` is 0.
  Variable forward(Tape& tape, Variable x, const WordFeatures* features) const;
  /// Null with TagHead::kSoftmax.
  const Crf* crf() const { return crf_ ? &*crf_ : nullptr; }

 private:
  std::optional<Linear> output_;
  std::optional<EmbeddingBag> linear_;
  std::optional<Crf> crf_;
};

/// `config` must be resolved. Parameters, in this order, those of what the configuration has:
/// words.tokens [vocabulary, word_width]; characters.*; shapes.tokens; ngrams.weight
/// [buckets, ngram_width]; input.* of FrameEmbedding; those of TextEncoder; those of TagHeadLayers,
/// of several columns "columns.0.output.weight" and so on. Where linear features alone describe a
/// word, there is no input, encoder and output.
class TaggerLayers {
 public:
  /// `rules` is empty, or has an element for each column.
  TaggerLayers(const TaggerConfig& config, std::span<const CrfRules> rules,
               const ParameterScope& scope);

  /// The rows of `rows`, each sentence a sequence.
  PackedRows lay_out(Tape& tape, const WordRows& rows) const;
  struct View {
    std::span<HeadStatistics> attention{};  ///< empty, or an element for each attention
    Variable* inputs = nullptr;             ///< see TaggerLossOptions
  };
  /// For each column [N, tags], the scores of each word by itself.
  std::vector<Variable> logits(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                               const DropoutKey& key, const View& view) const;

  index attentions() const { return encoder_ ? encoder_->attentions() : 0; }
  const TagHeadLayers& head(std::size_t column) const { return heads_[column]; }

 private:
  Variable describe(Tape& tape, const WordRows& rows) const;
  Variable ngrams(Tape& tape, const WordRows& rows) const;
  std::optional<WordFeatures> features(Tape& tape, const WordRows& rows,
                                       const PackedRows& sentences, const DropoutKey& key) const;

  const TaggerConfig config_;
  std::optional<Embedding> words_;
  std::optional<CharacterLayers> characters_;
  std::optional<Embedding> shapes_;
  std::optional<EmbeddingBag> ngrams_;
  std::optional<FrameEmbedding> input_;
  std::optional<TextEncoder> encoder_;
  std::vector<TagHeadLayers> heads_;
};

}  // namespace fovea
