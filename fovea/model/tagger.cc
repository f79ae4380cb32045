// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/tagger.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/kernel/dropout.h"
#include "fovea/model/layer_table.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/text_batch.h"
#include "fovea/text/words.h"

namespace fovea {

namespace {

constexpr index kUsualBuckets = 100000;
constexpr index kUsualLinearBuckets = index{1} << 18;

void resolve_characters(TaggerConfig& c) {
  if (c.character_reader == CharacterReader::kNone) {
    c.character_width = c.character_features = 0;
    if (!c.linear) c.characters = 0;
    return;
  }
  check_size("character_width", c.character_width, 1);
  check_size("character_features", c.character_features, 1);
  check_size("characters", c.characters, 1);
  if (c.character_reader != CharacterReader::kBilstm) return;
  require_option(c.character_features % 2 == 0, "character_features", c.character_features,
                 "even with --character-reader bilstm, whose directions have half of it each");
}

void resolve_ngrams(TaggerConfig& c) {
  if (c.ngram_width == 0) return;
  if (c.buckets == 0) c.buckets = kUsualBuckets;
  check_size("buckets", c.buckets, 1);
}

void resolve_linear(TaggerConfig& c) {
  if (!c.linear) return;
  if (c.linear_buckets == 0) c.linear_buckets = kUsualLinearBuckets;
  check_size("linear_buckets", c.linear_buckets, 2);
}

// Leaves out what else describes a word, where the layers of a base do.
void read_by_base(TaggerConfig& c) {
  c.word_width = c.character_width = c.character_features = c.shape_width = 0;
  c.ngram_width = c.buckets = c.linear_buckets = 0;
  c.character_reader = CharacterReader::kNone;
  c.linear = false;
  c.input_dropout = 0;
}

}  // namespace

TaggerConfig tagger_on(const BertConfig& layers) {
  TaggerConfig c;
  take_layers(c, layers);
  read_by_base(c);
  c.encoder.clear();
  c.head = {TagHead::kSoftmax};
  c.output_dropout = layers.head_dropout;
  return c;
}

TaggerConfig resolve(TaggerConfig c) {
  check_ranges(c);
  if (c.has_base()) {
    read_by_base(c);
    check_layers(c);
    require_one_or_each("--head", c.head.size(), c.tags.size());
    return c;
  }
  resolve_characters(c);
  resolve_ngrams(c);
  resolve_linear(c);
  c.features = c.word_width + c.character_features + c.shape_width + c.ngram_width;
  require_option(c.features > 0 || c.linear, "word_width", c.word_width,
                 "above 0 where nothing else describes a word: no characters, shapes or n-grams");
  check_size("features", c.features, 0);
  if (c.features == 0 && !c.encoder.empty()) {
    throw Error(
        ErrorCode::kOptionValue,
        fmt::format("--encoder: {} has nothing to read: only --linear describes a word", c.encoder),
        "leave the encoder out: --encoder \"\"");
  }
  resolve_encoder(c);
  require_one_or_each("--head", c.head.size(), c.tags.size());
  check_stages(c, sized_stages(c));
  return c;
}

std::vector<SizedStage> sized_stages(const TaggerConfig& c) {
  if (c.encoder.empty()) return {};
  return size_stages(c, parse_encoder(c.encoder));
}

void require_one_or_each(std::string_view option, std::size_t given, std::size_t columns) {
  if (columns > 0 && (given == 1 || given == columns)) return;
  throw Error(ErrorCode::kOptionValue,
              fmt::format("{}: expected one for all tag columns, or one for each of the {}, got {}",
                          option, columns, given),
              "name as many, with commas, as --tag-column (of CoNLL-U --column) names columns");
}

index tag_count(const TaggerConfig& c) {
  return std::accumulate(c.tags.begin(), c.tags.end(), index{0});
}

index parameter_count(const TaggerConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const TaggerLayers layers(resolve(config), {}, ParameterScope(shapes));
  return shapes.size();
}

index frozen_count(const TaggerConfig& c) {
  return c.freeze_embeddings ? c.vocabulary * c.word_width : 0;
}

namespace {

constexpr std::int32_t kEnd = -1;

// The places, from the word, whose ids a feature joins.
struct Template {
  std::array<std::int8_t, 3> places;
  std::size_t size;
};
constexpr std::array<Template, 11> kOfWords = {{{{}, 0},
                                                {{-2}, 1},
                                                {{-1}, 1},
                                                {{0}, 1},
                                                {{1}, 1},
                                                {{2}, 1},
                                                {{-2, -1}, 2},
                                                {{-1, 0}, 2},
                                                {{0, 1}, 2},
                                                {{1, 2}, 2},
                                                {{-1, 1}, 2}}};
constexpr std::array<Template, 6> kOfShapes = {
    {{{-1}, 1}, {{0}, 1}, {{1}, 1}, {{-1, 0}, 2}, {{0, 1}, 2}, {{-1, 0, 1}, 3}}};
constexpr std::uint32_t kFirstOfShapes = 32, kFirstOfCharacters = 64;  // numbers of templates

class Hasher {
 public:
  Hasher(index buckets, std::int32_t* to) : buckets_(buckets), to_(to) {}

  // The n-th id of the sentence, which has `size`.
  template <class Templates>
  void add(const Templates& templates, std::uint32_t first, Vec<const std::int32_t> sentence,
           index n) {
    for (const Template& t : templates) {
      WordHash h(first++);
      for (std::size_t k = 0; k < t.size; ++k) {
        const index at = n + t.places[k];
        h = h.with(at >= 0 && at < sentence.size ? sentence[at] : kEnd);
      }
      keep(h);
    }
  }

  void add_ngrams(Vec<const std::int32_t> characters) {
    const index m = characters.size;
    const auto at = [&](index i) { return i == 0 || i > m ? kEnd : characters[i - 1]; };
    for (index begin = 0; m > 0 && begin <= m; ++begin) {
      WordHash h(kFirstOfCharacters);
      for (index i = begin; i < std::min(begin + kLongestCharacterNgram, m + 2); ++i) {
        h = h.with(at(i));
        if (i > begin) keep(h);
      }
    }
  }

  const std::int32_t* end() const { return to_; }

 private:
  void keep(WordHash h) { *to_++ = 1 + h.row(buckets_ - 1); }

  index buckets_;
  std::int32_t* to_;
};

Vec<const std::int32_t> part(Vec<const std::int32_t> all, index begin, index end) {
  return {all.data + begin, end - begin};
}

struct FeatureMask {
  PhiloxKey key;
  std::uint32_t below;
};

void drop(std::int32_t* ids, index count, const SampleRow& word, const FeatureMask& mask) {
  PhiloxCounter drawn{};
  for (index f = 0; f < count; ++f) {
    if (f % 4 == 0) {
      drawn = philox4x32(
          {static_cast<std::uint32_t>(f / 4), word.row, static_cast<std::uint32_t>(word.sample),
           static_cast<std::uint32_t>(word.sample >> 32)},
          mask.key);
    }
    if (drawn[static_cast<std::size_t>(f % 4)] < mask.below) ids[f] = kDroppedFeature;
  }
}

// The numbers of dropout masks: no layer of the encoder counts so far.
constexpr std::uint32_t kOutputMask = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kInputMask = kOutputMask - 1;
constexpr std::uint32_t kFeatureMask = kOutputMask - 2;

// Rows about as long as 1, whatever their width (Lample et al. 2016).
Init row_init(index width) {
  const double most = std::sqrt(3 / static_cast<double>(width));
  return Init::uniform(-most, most);
}

EmbeddingOptions table(index rows, index width) {
  return {
      .vocabulary = rows, .width = width, .position = PositionKind::kNone, .init = row_init(width)};
}

EmbeddingOptions word_table(const TaggerConfig& c) {
  EmbeddingOptions options = table(c.vocabulary, c.word_width);
  options.row_use = RowUse::kSparse;
  options.frozen = c.freeze_embeddings;
  return options;
}

FrameEmbeddingOptions input_options(const TaggerConfig& c) {
  return {.features = c.features,
          .width = c.width,
          .positions = c.position_max,
          .position = c.position,
          .join = c.position_join,
          .sinusoid = c.sinusoid,
          .scale = c.embedding_scale,
          .weight = linear_uniform_init(c.features)};
}

LinearOptions output_options(const TaggerConfig& c, std::size_t column, index in) {
  return {.in = in,
          .out = c.tags[column],
          .bias = Biases::kLearned,
          .weight = linear_uniform_init(in),
          .bias_start = bias_start(c)};
}

EmbeddingBagOptions linear_options(const TaggerConfig& c, std::size_t column) {
  return {.rows = c.linear_buckets,
          .width = c.tags[column],
          .mode = BagMode::kRootMean,
          .init = Init::zeros(),
          .padding = kDroppedFeature};
}

template <class Layer, class... Arguments>
std::optional<Layer> layer_if(bool exists, const Arguments&... arguments) {
  if (!exists) return std::nullopt;
  return std::optional<Layer>(std::in_place, arguments...);
}

template <class T>
std::vector<std::int32_t> largest_of_rows(Rows<const T> logits) {
  std::vector<std::int32_t> best(static_cast<std::size_t>(logits.rows));
  for (index n = 0; n < logits.rows; ++n) {
    const T* const row = logits[n];
    best[static_cast<std::size_t>(n)] =
        static_cast<std::int32_t>(std::max_element(row, row + logits.columns) - row);
  }
  return best;
}

template <class T>
std::vector<double> softmax_of_rows(Rows<const T> logits) {
  std::vector<double> all(static_cast<std::size_t>(logits.rows * logits.columns));
  for (index n = 0; n < logits.rows; ++n) {
    const T* const row = logits[n];
    double* const to = all.data() + n * logits.columns;
    const double most = *std::max_element(row, row + logits.columns);
    double sum = 0;
    for (index k = 0; k < logits.columns; ++k) sum += to[k] = std::exp(double{row[k]} - most);
    for (index k = 0; k < logits.columns; ++k) to[k] /= sum;
  }
  return all;
}

}  // namespace

index feature_count(index characters) {
  index count = static_cast<index>(kOfWords.size() + kOfShapes.size());
  for (index n = 2; characters > 0 && n <= kLongestCharacterNgram; ++n) {
    count += std::max<index>(0, characters + 3 - n);
  }
  return count;
}

// A word of m characters has m + 1 pairs, m triples, m - 1 and m - 2 longer ones: less than 4 m.
index most_features(index words, index characters) {
  return words * feature_count(0) + (kLongestCharacterNgram - 1) * characters;
}

WordFeatures hash_features(Tape& tape, const WordRows& rows, const PackedRows& sentences,
                           const FeatureOptions& options) {
  const index N = rows.words.size;
  const auto characters_of = [&](index w) {
    if (rows.characters.empty()) return Vec<const std::int32_t>{};
    return part(rows.characters, rows.character_offsets[w], rows.character_offsets[w + 1]);
  };
  auto* const offsets = tape.saved<std::int32_t>(N + 1);
  index count = offsets[0] = 0;
  for (index w = 0; w < N; ++w) {
    count += feature_count(characters_of(w).size);
    if (count > std::numeric_limits<std::int32_t>::max()) {
      fail(ErrorCode::kOptionValue,
           "batch: {} features of {} words are more than it can hold (there are {} words)", count,
           w + 1, N);
    }
    offsets[w + 1] = static_cast<std::int32_t>(count);
  }
  auto* const ids = tape.saved<std::int32_t>(offsets[N]);
  for (index s = 0; s + 1 < rows.offsets.size; ++s) {
    const index begin = rows.offsets[s], end = rows.offsets[s + 1];
    for (index w = begin; w < end; ++w) {
      Hasher hasher(options.buckets, ids + offsets[w]);
      hasher.add(kOfWords, 0, part(rows.words, begin, end), w - begin);
      hasher.add(kOfShapes, kFirstOfShapes, part(rows.shapes, begin, end), w - begin);
      hasher.add_ngrams(characters_of(w));
    }
  }
  if (tape.mode() == TapeMode::kTrain && options.dropout > 0) {
    const PhiloxKey key = philox_key(options.key);
    const auto below = static_cast<std::uint32_t>(std::ldexp(options.dropout, 32));
    for (index w = 0; w < N; ++w) {
      drop(ids + offsets[w], offsets[w + 1] - offsets[w], sentences.rows[w], {key, below});
    }
  }
  return {{ids, offsets[N]}, {offsets, N + 1}, options.dropout};
}

CharacterLayers::CharacterLayers(const TaggerConfig& c, const ParameterScope& scope)
    : table_(table(c.characters, c.character_width), scope["table"]) {
  if (c.character_reader == CharacterReader::kConvolution) {
    window_.emplace(
        ConvolutionLayerOptions{
            .in = c.character_width, .out = c.character_features, .width = kCharacterWindow},
        scope["window"]);
    return;
  }
  states_.emplace(RecurrentLayersOptions{.in = c.character_width,
                                         .hidden = c.character_features / 2,
                                         .bidirectional = true,
                                         .forget_bias = c.forget_bias},
                  scope["states"]);
}

Variable CharacterLayers::forward(Tape& tape, Vec<const std::int32_t> characters,
                                  Vec<const std::int32_t> offsets) const {
  const PackedRows words = lay_out_rows(tape, characters.size, offsets, {});
  const Variable x = table_.forward(tape, characters, words);
  if (window_) return max_over_time(tape, window_->forward(tape, x, words), words);
  const Variable states = states_->forward(tape, x, words, {});
  const index half = states.columns() / 2;
  const index widths[] = {half, half};
  const std::span<const Variable> directions = split_columns(tape, states, widths);
  const Variable ends[] = {last_over_time(tape, directions[0], words),
                           first_over_time(tape, directions[1], words)};
  return concat_columns(tape, ends);
}

TagHeadLayers::TagHeadLayers(const TaggerConfig& c, std::size_t column, index in,
                             const CrfRules& rules, const ParameterScope& scope)
    : linear_(layer_if<EmbeddingBag>(c.linear, linear_options(c, column), scope["linear"])) {
  if (in > 0) output_.emplace(output_options(c, column, in), scope["output"]);
  if (head_of(c, column) == TagHead::kCrf) crf_.emplace(c.tags[column], rules, scope["crf"]);
}

Variable TagHeadLayers::forward(Tape& tape, Variable x, const WordFeatures* features) const {
  const Variable of_rows = output_ ? output_->forward(tape, x) : Variable();
  if (!linear_) return of_rows;
  // A sum of n kept features over sqrt(n) is smaller than that of all by sqrt(1 - p).
  const Variable sums = linear_->forward(tape, features->ids, features->offsets);
  const Variable of_features =
      features->dropout > 0 ? scale(tape, sums, 1 / std::sqrt(1 - features->dropout)) : sums;
  return output_ ? add(tape, of_rows, of_features) : of_features;
}

// n-grams that no training text has say nothing: their rows stay 0.
TaggerLayers::TaggerLayers(const TaggerConfig& c, std::span<const CrfRules> rules,
                           const ParameterScope& scope)
    : config_(c),
      pretrained_(layer_if<BertLayers>(c.has_base(), pretrained_layers(c), scope)),
      words_(layer_if<Embedding>(c.word_width > 0, word_table(c), scope["words"])),
      characters_(layer_if<CharacterLayers>(c.character_reader != CharacterReader::kNone, c,
                                            scope["characters"])),
      shapes_(layer_if<Embedding>(c.shape_width > 0, table(kWordShapes, c.shape_width),
                                  scope["shapes"])),
      ngrams_(layer_if<EmbeddingBag>(c.ngram_width > 0,
                                     EmbeddingBagOptions{.rows = c.buckets,
                                                         .width = c.ngram_width,
                                                         .mode = BagMode::kSum,
                                                         .init = Init::zeros()},
                                     scope["ngrams"])) {
  check(rules.empty() || rules.size() == c.tags.size(), "tagger: rules of {} columns for {}",
        rules.size(), c.tags.size());
  if (c.features > 0 && !pretrained_) {
    input_.emplace(input_options(c), scope["input"]);
    encoder_.emplace(c, sized_stages(c), scope);
  }
  const index in = pretrained_ ? c.width : encoder_ ? encoder_->width() : 0;
  for (std::size_t n = 0; n < c.tags.size(); ++n) {
    heads_.emplace_back(c, n, in, rules.empty() ? CrfRules{} : rules[n],
                        c.tags.size() == 1 ? scope : scope["columns"][static_cast<index>(n)]);
  }
}

PackedRows TaggerLayers::lay_out(Tape& tape, const WordRows& rows) const {
  return lay_out_texts(tape, {.ids = rows.words, .offsets = rows.offsets, .samples = rows.samples},
                       config_.block);
}

Variable TaggerLayers::ngrams(Tape& tape, const WordRows& rows) const {
  const index N = rows.words.size, count = kContextNgrams * N;
  if (count > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::kOptionValue, "batch: {} n-grams of {} words are more than it can hold", count,
         N);
  }
  auto* const ids = tape.saved<std::int32_t>(count);
  auto* const offsets = tape.saved<std::int32_t>(N + 1);
  hash_contexts(rows.words, rows.offsets, config_.buckets, {ids, count});
  for (index w = 0; w <= N; ++w) offsets[w] = static_cast<std::int32_t>(kContextNgrams * w);
  return ngrams_->forward(tape, {ids, count}, {offsets, N + 1});
}

// The vectors that describe each word, side by side.
Variable TaggerLayers::describe(Tape& tape, const WordRows& rows) const {
  std::vector<Variable> parts;
  if (words_) parts.push_back(words_->forward(tape, rows.words, {}));
  if (characters_) {
    parts.push_back(characters_->forward(tape, rows.characters, rows.character_offsets));
  }
  if (shapes_) parts.push_back(shapes_->forward(tape, rows.shapes, {}));
  if (ngrams_) parts.push_back(ngrams(tape, rows));
  return parts.size() == 1 ? parts[0] : concat_columns(tape, parts);
}

// The row of each word [N, width] is that of its first subword. A word without one has no row of
// its own, but that of the token in its place: append_subwords() leaves such words out.
Variable TaggerLayers::read_subwords(Tape& tape, const WordRows& rows, const DropoutKey& key,
                                     const View& view) const {
  const index sentences = std::max<index>(rows.offsets.size - 1, 0), words = rows.words.size;
  const index tokens = rows.characters.size + sentences * (rows.before.size + rows.after.size);
  auto* const ids = tape.saved<std::int32_t>(tokens);
  auto* const offsets = tape.saved<std::int32_t>(sentences + 1);
  auto* const places = tape.saved<std::int32_t>(words);
  std::int32_t* to = ids;
  offsets[0] = 0;
  for (index s = 0; s < sentences; ++s) {
    to = std::copy(rows.before.begin(), rows.before.end(), to);
    for (index w = rows.offsets[s]; w < rows.offsets[s + 1]; ++w) {
      places[w] = static_cast<std::int32_t>(std::min<index>(to - ids, tokens - 1));
      to = std::copy(rows.characters.data + rows.character_offsets[w],
                     rows.characters.data + rows.character_offsets[w + 1], to);
    }
    to = std::copy(rows.after.begin(), rows.after.end(), to);
    offsets[s + 1] = static_cast<std::int32_t>(to - ids);
  }
  if (tokens == 0) {
    const Variable none = tape.result(words, config_.width, DType::kFloat32);
    std::fill_n(none.value<float>().data, words * config_.width, 0.F);
    return none;
  }
  const BertRows read = pretrained_->forward(tape, {.texts = {.ids = {ids, tokens},
                                                              .offsets = {offsets, sentences + 1},
                                                              .samples = rows.samples},
                                                    .dropout = key,
                                                    .attention = view.attention,
                                                    .inputs = view.inputs});
  return embedding(tape, TableRows{read.rows, {places, words}});
}

std::optional<WordFeatures> TaggerLayers::features(Tape& tape, const WordRows& rows,
                                                   const PackedRows& sentences,
                                                   const DropoutKey& key) const {
  if (!config_.linear) return std::nullopt;
  const double p = tape.mode() == TapeMode::kTrain ? config_.linear_dropout : 0;
  return hash_features(tape, rows, sentences,
                       {config_.linear_buckets, p, {key.seed, key.step, kFeatureMask}});
}

std::vector<Variable> TaggerLayers::logits(Tape& tape, const WordRows& rows,
                                           const PackedRows& sentences, const DropoutKey& key,
                                           const View& view) const {
  const auto drop = [&](Variable x, double p, std::uint32_t mask) {
    return dropout(tape, x, {p, {key.seed, key.step, mask}}, sentences);
  };
  Variable x;
  if (pretrained_) {
    x = drop(read_subwords(tape, rows, key, view), config_.output_dropout, kOutputMask);
  } else if (encoder_) {
    x = describe(tape, rows);
    if (view.inputs != nullptr) x = *view.inputs = as_input(tape, x);
    x = drop(x, config_.input_dropout, kInputMask);
    x = input_->forward(tape, x, {}, sentences);
    x = encoder_->forward(tape, x, sentences, key, view.attention);
    x = drop(x, config_.output_dropout, kOutputMask);
  }
  const std::optional<WordFeatures> hashed = features(tape, rows, sentences, key);
  std::vector<Variable> scores;
  for (const TagHeadLayers& head : heads_) {
    scores.push_back(head.forward(tape, x, hashed ? &*hashed : nullptr));
  }
  return scores;
}

TagScores Tagger::scores(Tape& tape, const WordRows& rows, const TaggerLossOptions& o) const {
  const PackedRows sentences = layers().lay_out(tape, rows);
  return {layers().logits(tape, rows, sentences, o.dropout, {o.attention, o.inputs}), sentences};
}

Variable Tagger::loss(Tape& tape, const TaggedRows& batch, const TaggerLossOptions& o) const {
  if (batch.rows.words.empty()) return zero_loss(tape);
  return loss_of(tape, scores(tape, batch.rows, o), batch.tags, o);
}

Variable Tagger::loss_of(Tape& tape, const TagScores& scores,
                         std::span<const Vec<const std::int32_t>> tags,
                         const TaggerLossOptions& o) const {
  check(tags.size() == scores.logits.size(), "tagger: {} columns of tags for {}", tags.size(),
        scores.logits.size());
  Variable sum = loss_of_column(tape, scores, 0, tags[0], o.scale);
  for (std::size_t n = 1; n < tags.size(); ++n) {
    sum = add(tape, sum, loss_of_column(tape, scores, n, tags[n], o.scale));
  }
  return sum;
}

Variable Tagger::loss_of_column(Tape& tape, const TagScores& scores, std::size_t column,
                                Vec<const std::int32_t> tags, double scale) const {
  const Variable logits = scores.logits[column];
  check(tags.size == logits.rows(), "tagger: {} tags for {} words", tags.size, logits.rows());
  if (const Crf* crf = layers().head(column).crf()) {
    return crf->loss(tape, logits, tags, scores.sentences, scale);
  }
  return cross_entropy(tape, logits, {.ids = tags}, scale);
}

std::vector<std::int32_t> best_tags(Variable logits) {
  std::vector<std::int32_t> best;
  with_type(logits.dtype(),
            [&]<class T>(std::type_identity<T>) { best = largest_of_rows<T>(logits.value<T>()); });
  return best;
}

std::vector<double> tag_probabilities(Variable logits) {
  std::vector<double> all;
  with_type(logits.dtype(),
            [&]<class T>(std::type_identity<T>) { all = softmax_of_rows<T>(logits.value<T>()); });
  return all;
}

std::vector<std::int32_t> Tagger::best_tags(const Context& context, const TagScores& scores,
                                            std::size_t column) const {
  const Variable logits = scores.logits[column];
  if (const Crf* crf = layers().head(column).crf()) {
    return crf->decode(context, logits, scores.sentences);
  }
  return fovea::best_tags(logits);
}

std::vector<double> Tagger::probabilities(const Context& context, const TagScores& scores,
                                          std::size_t column) const {
  const Variable logits = scores.logits[column];
  if (const Crf* crf = layers().head(column).crf()) {
    return crf->marginals(context, logits, scores.sentences);
  }
  return tag_probabilities(logits);
}

namespace {

// Of a base, each subword of which is as a word.
TapeLoad subwords_of(const WordLoad& load) {
  TapeLoad tape = load.tape;
  tape.tokens = load.characters;
  return tape;
}

}  // namespace

PassCost plan_pass(const Context& context, const TaggerConfig& config, const WordLoad& load,
                   const ModelChange<Tagger>& change) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load, change);
  const TaggerConfig c = resolve(config);
  const PlannedRows rows(c.has_base() ? subwords_of(load) : load.tape, c.block, c.vocabulary);
  const std::vector<std::int32_t> zeros(rows.ids.size());
  const std::vector<std::int32_t> characters =
      ids_below(load.characters, c.has_base() ? c.vocabulary : c.characters);
  // The first word has what is more than one character a word.
  std::vector<std::int32_t> ends(rows.ids.size() + 1);
  for (std::size_t n = 0; n + 1 < ends.size(); ++n) {
    const index left = std::ssize(rows.ids) - 1 - static_cast<index>(n);
    ends[n + 1] = std::max(ends[n], static_cast<std::int32_t>(load.characters - left));
  }
  const WordRows words{.words = rows.ids,
                       .shapes = zeros,
                       .characters = characters,
                       .character_offsets = ends,
                       .offsets = rows.offsets};
  return plan_changed<Tagger>(
      context, load.tape, [&](const auto& options) { return Tagger(c, {}, options); }, change,
      [&](Tape& tape, const Tagger& model, std::span<HeadStatistics> seen) {
        const TagScores scores = model.scores(tape, words, {.attention = seen});
        if (load.tape.mode != TapeMode::kTrain) model.best_tags(tape.context(), scores);
        const std::vector<Vec<const std::int32_t>> tags(c.tags.size(), zeros);
        return model.loss_of(tape, scores, tags);
      });
}

}  // namespace fovea
