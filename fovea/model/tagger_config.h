// SPDX-License-Identifier: Apache-2.0
// The configuration of a tagger, its parameter count and its FLOPs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"

namespace fovea {

/// The layer that reads the characters of a word, or its subwords.
enum class CharacterReader : std::uint8_t {
  kNone,
  kConvolution,  ///< a convolution (kCharacterWindow) and the maximum over time (Ma and Hovy 2016)
  kBilstm,       ///< the last states of an LSTM in each direction (Lample et al. 2016)
};
inline constexpr EnumName<CharacterReader> kCharacterReaderNames[] = {
    {CharacterReader::kNone, "none"},
    {CharacterReader::kConvolution, "conv"},
    {CharacterReader::kBilstm, "bilstm"}};
inline std::span<const EnumName<CharacterReader>> enum_names(CharacterReader) {
  return kCharacterReaderNames;
}

/// Characters that the convolution sees at once.
inline constexpr index kCharacterWindow = 3;

/// How the tags of a sentence are chosen.
enum class TagHead : std::uint8_t {
  kSoftmax,  ///< each by itself
  kCrf,      ///< all together, by what each makes of the next
};
inline constexpr EnumName<TagHead> kTagHeadNames[] = {{TagHead::kSoftmax, "softmax"},
                                                      {TagHead::kCrf, "crf"}};
inline std::span<const EnumName<TagHead>> enum_names(TagHead) { return kTagHeadNames; }

/// The model: for each word, the row of a table, the vector of its characters, its shape, and the
/// n-grams around it, side by side -> dropout -> linear (+ positions) -> encoder -> dropout -> for
/// each column of tags linear, a score for each tag (+ scores of hashed features) -> head. Sizes
/// given as 0 follow from the others; resolve() fills them in.
struct TaggerConfig : EncoderConfig {
  TaggerConfig() {
    sight = Sight::kWhole;
    position = PositionKind::kNone;
    block = 1024;
  }

  std::vector<TagHead> head = {TagHead::kCrf};  ///< one for all columns of tags, or for each
  index word_width = 100;
  CharacterReader character_reader = CharacterReader::kConvolution;
  index character_width = 30;
  index character_features = 50;
  index shape_width = 10;
  index ngram_width = 0;
  index buckets = 0;
  bool linear = false;
  index linear_buckets = 0;
  double linear_dropout = 0.5;
  double input_dropout = 0;
  double output_dropout = 0;
  std::vector<index> tags = {0};  ///< of each column; each has a head of its own
  index characters = 0;

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("encoder", encoder,
          "layers that read the words, such as conv3,attention:window=8,bilstm; none: each word "
          "by itself",
          {.place = HelpPlace::kModel, .shown = "LAYERS"});
    visit("head", head,
          "how tags are chosen: each by itself, or all of a sentence together; with commas one for "
          "each tag column");
    visit("word_width", word_width,
          "width of the word embeddings; 0: none, or that of --embeddings",
          {.range = ValueRange::in(0, kLargestSize)});
    visit("character_reader", character_reader,
          "what reads the characters of a word, or its subwords with --tokenizer sentencepiece");
    visit("character_width", character_width, "width of the embeddings of characters or subwords");
    visit("character_features", character_features,
          "numbers that the characters of a word, or its subwords, become");
    visit("shape_width", shape_width,
          "width of the embeddings of shapes (capitals, digits, signs); 0: none",
          {.range = ValueRange::in(0, kLargestSize)});
    visit("ngram_width", ngram_width,
          "width of the embeddings of the n-grams of 2 and 3 words around each; 0: none",
          {.range = ValueRange::in(0, kLargestSize)});
    visit("buckets", buckets,
          "--ngram-width: rows of the table of n-grams, into which they are hashed; 0: 100000",
          {.needs = {"ngram_width"}});
    visit("linear", linear,
          "hashed features of a word (its characters' n-grams, words and shapes around it) add to "
          "the scores of tags, as in a linear CRF");
    visit("linear_buckets", linear_buckets,
          "--linear: rows of the table of the features, into which they are hashed; 0: 262144",
          {.needs = {"linear"}});
    visit("linear_dropout", linear_dropout,
          "--linear: probability of dropping a feature, in training",
          {.range = ValueRange::share(), .part = "linear"});
    visit_init(visit);
    visit_sizes(visit);
    visit("block", block, "context length: most tokens that the model sees at once",
          {.range = ValueRange::in(1, kLargestSize), .is_option = false});
    visit("input_dropout", input_dropout,
          "probability of dropping a number of what describes a word, in training",
          {.range = ValueRange::share()});
    visit("dropout", output_dropout,
          "probability of dropping a number of what the encoder says of a word, in training",
          {.range = ValueRange::share()});
    visit("encoder_dropout", dropout,
          "probability of dropping a weight or activation of the encoder in training",
          {.range = ValueRange::share()});
    visit("freeze_embeddings", freeze_embeddings,
          "with --embeddings: the table of the words is not trained", {.needs = {"embeddings"}});
    visit_positions(under("Positions", visit));
    visit_attention(under("Attention", visit));
    visit_layers(under("Layers", visit));
    visit("tags", tags, "number of tags",
          {.range = ValueRange::in(1, kLargestSize), .is_option = false});
    visit("vocabulary", vocabulary, "number of words",
          {.range = ValueRange::in(1, kLargestSize), .is_option = false});
    visit("characters", characters, "number of characters or subwords", {.is_option = false});
  }

  friend bool operator==(const TaggerConfig&, const TaggerConfig&) = default;
};

/// The configuration with every size filled in; `features` is the width of what describes a word.
/// Throws kShape or kOptionValue that names the option, its value and the rule.
TaggerConfig resolve(TaggerConfig config);

/// The stages of a resolved configuration, none without an encoder. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const TaggerConfig& config);

/// Throws kOptionValue unless an option was given once for all tag columns, or once for each.
void require_one_or_each(std::string_view option, std::size_t given, std::size_t columns);

/// How the tags of a column are chosen.
inline TagHead head_of(const TaggerConfig& config, std::size_t column) {
  return config.head.size() == 1 ? config.head[0] : config.head[column];
}

/// The tags of all columns.
index tag_count(const TaggerConfig& config);

/// The number of learned values. Allocates nothing.
index parameter_count(const TaggerConfig& config);

/// How many parameters of a resolved configuration are frozen: the table of the words, or none.
index frozen_count(const TaggerConfig& config);

}  // namespace fovea
