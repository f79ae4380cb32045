// SPDX-License-Identifier: Apache-2.0
// A tagger: from the words of a sentence it computes a tag for each, with a softmax or a CRF over
// the encoder's rows (Lample et al. 2016, section 2); or several tags, with a head for each column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/random.h"
#include "fovea/base/view.h"
#include "fovea/grad/ops.h"
#include "fovea/grad/packed_rows.h"
#include "fovea/grad/tape.h"
#include "fovea/model/bert.h"
#include "fovea/model/encoder_config.h"
#include "fovea/model/encoder_spec.h"
#include "fovea/model/model.h"
#include "fovea/model/pass_plan.h"
#include "fovea/model/text_batch.h"
#include "fovea/model/text_encoder.h"
#include "fovea/nn/convolution.h"
#include "fovea/nn/crf.h"
#include "fovea/nn/embedding.h"
#include "fovea/nn/embedding_bag.h"
#include "fovea/nn/linear.h"
#include "fovea/nn/module.h"
#include "fovea/nn/recurrent.h"

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
/// each column of tags linear, a score for each tag (+ scores of hashed features) -> head. With the
/// layers of a base: the subwords of a sentence -> these layers -> the row of the first subword of
/// each word -> dropout -> the heads. Sizes given as 0 follow from the others; resolve() fills them
/// in.
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
    visit_base(visit);
  }

  friend bool operator==(const TaggerConfig&, const TaggerConfig&) = default;
};

/// A tagger on these layers, with a softmax; nothing else describes a word. Its tags are not said
/// yet.
TaggerConfig tagger_on(const BertConfig& layers);

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

/// The row of a table that stands for features that are dropped.
inline constexpr std::int32_t kDroppedFeature = 0;

/// Bags of rows of a table: word w has ids[offsets[w]] to ids[offsets[w + 1] - 1].
struct WordFeatures {
  Vec<const std::int32_t> ids = {};
  Vec<const std::int32_t> offsets = {};  ///< [N + 1]
  double dropout = 0;                    ///< with which features were dropped
};

/// The longest n-gram of characters that is a feature; the shortest has 2.
inline constexpr index kLongestCharacterNgram = 5;

/// How many features a word of so many characters has.
index feature_count(index characters);
/// The most that so many words can have, with so many characters together.
index most_features(index words, index characters);

struct FeatureOptions {
  index buckets = 2;   ///< rows of the table
  double dropout = 0;  ///< probability that a feature counts as row 0, in training
  DropoutKey key = {};
};

/// The input of a linear tagger: hashed features of each word, as those of a CRF for named entities
/// (Tkachenko and Simanovsky 2012) and for Chinese words (Tseng et al. 2005). They are in rows 1 to
/// buckets - 1 of a table; row 0 stands for features that are dropped. A word has: 1; the words at
/// -2 to 2, the pairs (-2, -1), (-1, 0), (0, 1), (1, 2), (-1, 1) of them; the shapes at -1, 0 and
/// 1, the pairs (-1, 0) and (0, 1), and all three; and if it has characters, each n-gram of 2 to 5
/// of them, with an end before the first and one behind the last. Beyond the ends of a sentence
/// stands a word of its own. Models keep their rows, so the hash never changes: h = number of the
/// template * 2^32 (those of words are 0 to 10, of shapes 32 to 37, of characters 64); for each id
/// h = (h + id + 2) * 0x9E3779B97F4A7C15, an end being -1; then the row is 1 + mix(h) mod (buckets
/// - 1), with mix of SplitMix64. Feature f of a word is dropped if word f % 4 of philox4x32({f / 4,
/// place of the word, sample low, sample high}, philox_key(key)) is below dropout * 2^32, so no
/// mask depends on the other sentences of a batch. Throws kOptionValue if the words have 2^31
/// features together.
WordFeatures hash_features(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                           const FeatureOptions& options);

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
/// word, there is no input, encoder and output. With the layers of a base those of BertLayers, then
/// those of the heads.
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

  index attentions() const {
    return pretrained_ ? pretrained_->attentions() : encoder_ ? encoder_->attentions() : 0;
  }
  const TagHeadLayers& head(std::size_t column) const { return heads_[column]; }

 private:
  Variable describe(Tape& tape, const WordRows& rows) const;
  Variable read_subwords(Tape& tape, const WordRows& rows, const DropoutKey& key,
                         const View& view) const;
  Variable ngrams(Tape& tape, const WordRows& rows) const;
  std::optional<WordFeatures> features(Tape& tape, const WordRows& rows,
                                       const PackedRows& sentences, const DropoutKey& key) const;

  const TaggerConfig config_;
  std::optional<BertLayers> pretrained_;  // of a base: nothing else describes a word
  std::optional<Embedding> words_;
  std::optional<CharacterLayers> characters_;
  std::optional<Embedding> shapes_;
  std::optional<EmbeddingBag> ngrams_;
  std::optional<FrameEmbedding> input_;
  std::optional<TextEncoder> encoder_;
  std::vector<TagHeadLayers> heads_;
};

/// Sentences and their tags. All members are views.
struct TaggedRows {
  WordRows rows = {};
  std::vector<Vec<const std::int32_t>> tags = {};  ///< [tag columns], [N] each
};

struct TaggerLossOptions {
  double scale = 1;      ///< 1 / (the words of the update) makes the loss a mean
  DropoutKey dropout{};  ///< seed and step of this update's masks; `layer` is not read
  /// If not empty: [attentions()], to which the forward adds what each attention looks like.
  std::span<HeadStatistics> attention{};
  /// If given: becomes what the model reads of each word [N, features], as an input of the tape,
  /// for its gradient.
  Variable* inputs = nullptr;
};

/// The scores of the tags of each word by itself, and which words are a sentence.
struct TagScores {
  std::vector<Variable> logits;  ///< [tag columns], [N, tags] each
  PackedRows sentences;
};

/// The largest score of each row of logits [N, tags], the first of equal ones.
std::vector<std::int32_t> best_tags(Variable logits);
/// The softmax of each row of logits [N, tags], row after row.
std::vector<double> tag_probabilities(Variable logits);

/// No bit of a sentence's result depends on the others.
class Tagger : public ModelOf<TaggerConfig, TaggerLayers> {
 public:
  /// `rules` [tag columns]: which tags may follow each other, for the CRFs; empty: all may. Throws
  /// as resolve() does, and kOutOfMemory.
  Tagger(const TaggerConfig& config, std::span<const CrfRules> rules, std::uint64_t seed,
         DType dtype = DType::kFloat32)
      : Tagger(config, rules, ParameterSetOptions{seed, dtype}) {}
  Tagger(const TaggerConfig& config, std::span<const CrfRules> rules,
         const ParameterSetOptions& options)
      : ModelOf(config, options, rules) {}

  /// A sentence may have at most `block` words.
  TagScores scores(Tape& tape, const WordRows& rows, const TaggerLossOptions& options = {}) const;
  /// scale x the sum over columns and sentences of -log of the probability of their tags, in nats:
  /// [1, 1].
  /// Throws what crf_loss and cross_entropy do.
  Variable loss(Tape& tape, const TaggedRows& batch, const TaggerLossOptions& options = {}) const;
  /// The loss() for scores() that are there already.
  Variable loss_of(Tape& tape, const TagScores& scores,
                   std::span<const Vec<const std::int32_t>> tags,
                   const TaggerLossOptions& options = {}) const;

  /// The best tag of each word [N] in a column; with a CRF those of the best path of each sentence.
  /// The first of equal ones is taken.
  std::vector<std::int32_t> best_tags(const Context& context, const TagScores& scores,
                                      std::size_t column = 0) const;
  /// The probability of each tag of each word in a column: [N, tags], row after row; with a CRF
  /// over all paths.
  std::vector<double> probabilities(const Context& context, const TagScores& scores,
                                    std::size_t column = 0) const;

 private:
  Variable loss_of_column(Tape& tape, const TagScores& scores, std::size_t column,
                          Vec<const std::int32_t> tags, double scale) const;
};

/// The load of a tagger.
struct WordLoad {
  TapeLoad tape{};       ///< of its words; with a base `lengths`, if any, are those in subwords
  index characters = 0;  ///< of all its words; with a base its subwords, with marks

  index listed() const { return tape.tokens + characters; }
  WordLoad part(double share) const { return {tape.part(share), part_of(characters, share)}; }
};
PassCost plan_pass(const Context& context, const TaggerConfig& config, const WordLoad& load,
                   const ModelChange<Tagger>& change = {});

}  // namespace fovea
