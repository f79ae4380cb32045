// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier_layers.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "fovea/model/layer_table.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/text_batch.h"

namespace fovea {

namespace {

// The number of the dropout mask of the pooled texts: no layer of the encoder counts so far.
constexpr std::uint32_t kMask = std::numeric_limits<std::uint32_t>::max();

// Every text as a sequence of one row.
PackedRows one_row_each(Tape& tape, const TextRows& texts) {
  auto* const offsets = tape.saved<std::int32_t>(texts.offsets.size);
  std::iota(offsets, offsets + texts.offsets.size, 0);
  return lay_out_rows(tape, texts.offsets.size - 1, {offsets, texts.offsets.size}, texts.samples);
}

LinearOptions output_options(const ClassifierConfig& c, index in) {
  return {.in = in,
          .out = logit_count(c),
          .bias = Biases::kLearned,
          .weight = matrix_init(c, in, logit_count(c)),
          .bias_start = bias_start(c)};
}

std::optional<EmbeddingBag> ngram_table(const ClassifierConfig& c, const ParameterScope& scope) {
  if (c.ngrams == 1) return std::nullopt;
  return std::optional<EmbeddingBag>(
      std::in_place,
      EmbeddingBagOptions{.rows = c.buckets, .width = c.ngram_width, .mode = BagMode::kRootMean},
      scope);
}

std::optional<Embedding> segment_table(const ClassifierConfig& c, const ParameterScope& scope) {
  if (c.pair_encoder != PairEncoder::kCross) return std::nullopt;
  return std::optional<Embedding>(
      std::in_place,
      EmbeddingOptions{.vocabulary = 2, .width = c.width, .position = PositionKind::kNone}, scope);
}

// The place of the first separator in each pair; that before an empty one.
template <class F>
void for_each_separator(const TextRows& texts, std::int32_t separator, F&& f) {
  for (index s = 0; s + 1 < texts.offsets.size; ++s) {
    if (texts.offsets[s] == texts.offsets[s + 1]) {
      f(s, texts.offsets[s] - 1);
      continue;
    }
    const std::int32_t* const begin = texts.ids.data + texts.offsets[s];
    const std::int32_t* const end = texts.ids.data + texts.offsets[s + 1];
    const std::int32_t* const found = std::find(begin, end, separator);
    check(found != end, "classifier: pair {} has no separator, token {}", s, separator);
    f(s, static_cast<std::int32_t>(found - texts.ids.data));
  }
}

// A row of few numbers becomes one about as large.
FrameEmbeddingOptions frame_options(const ClassifierConfig& c) {
  const bool keras = c.init == InitScheme::kKeras;
  return {
      .features = c.features,
      .joints = c.joints,
      .width = c.width,
      .positions = c.position_max,
      .position = c.position,
      .join = c.position_join,
      .sinusoid = c.sinusoid,
      .scale = c.embedding_scale,
      .weight = keras ? glorot_uniform_init(c.features, c.width) : linear_uniform_init(c.features)};
}

}  // namespace

ClassifierLayers::ClassifierLayers(const ClassifierConfig& c, const ParameterScope& scope)
    : block_(c.block),
      joints_(c.joints),
      frame_features_(c.features),
      separator_(pair_separator(c)),
      is_bi_(c.pair_encoder == PairEncoder::kBi),
      longest_(c.ngrams),
      buckets_(c.buckets),
      dropout_(c.output_dropout),
      frames_(c.features == 0
                  ? std::nullopt
                  : std::optional<FrameEmbedding>(std::in_place, frame_options(c), scope["input"])),
      encoder_(c, sized_stages(c), scope),
      segments_(segment_table(c, scope["segments"])),
      pooling_(c.pooling, encoder_.width(), scope["pooling"],
               c.revision == Revision::kFirst ? 0 : reverse_columns(sized_stages(c))),
      ngrams_(ngram_table(c, scope["ngrams"])),
      output_(output_options(c, (is_bi_ ? 4 : 1) * (encoder_.width() + c.ngram_width)),
              scope["output"]) {}

// A separator ends each text. Both have masks of dropout of their own.
TextRows ClassifierLayers::read_apart(Tape& tape, const TextRows& texts) const {
  if (!is_bi_) return texts;
  const index S = texts.offsets.size - 1;
  auto* const offsets = tape.saved<std::int32_t>(2 * S + 1);
  auto* const samples = tape.saved<std::uint64_t>(texts.samples.empty() ? 0 : 2 * S);
  offsets[0] = 0;
  for_each_separator(texts, separator_, [&](index s, std::int32_t place) {
    offsets[2 * s + 1] = place + 1;
    offsets[2 * s + 2] = texts.offsets[s + 1];
  });
  for (index n = 0; n < 2 * texts.samples.size; ++n) {
    samples[n] = 2 * texts.samples[n / 2] + static_cast<std::uint64_t>(n % 2);
  }
  return {.ids = texts.ids,
          .offsets = {offsets, 2 * S + 1},
          .samples = {samples, 2 * texts.samples.size}};
}

// [N] 0 for the tokens of the first text and the separator, 1 for those of the second.
Vec<const std::int32_t> ClassifierLayers::segments_of(Tape& tape, const TextRows& texts) const {
  auto* const segments = tape.saved<std::int32_t>(texts.ids.size);
  for_each_separator(texts, separator_, [&](index s, std::int32_t place) {
    std::fill(segments + texts.offsets[s], segments + place + 1, 0);
    std::fill(segments + place + 1, segments + texts.offsets[s + 1], 1);
  });
  return {segments, texts.ids.size};
}

Variable ClassifierLayers::compared(Tape& tape, Variable features) const {
  return is_bi_ ? pair_features(tape, features) : features;
}

Variable ClassifierLayers::ngrams(Tape& tape, const TextRows& texts, Variable* inputs) const {
  const index S = texts.offsets.size - 1;
  auto* const offsets = tape.saved<std::int32_t>(S + 1);
  const index count = ngram_offsets(texts.offsets, longest_, {offsets, S + 1});
  auto* const ids = tape.saved<std::int32_t>(count);
  hash_ngrams(tape.context(), {texts.ids, texts.offsets}, {longest_, buckets_}, {ids, count});
  return ngrams_->forward(tape, {ids, count}, {offsets, S + 1}, inputs);
}

ClassifierLayers::Encoded ClassifierLayers::encode(Tape& tape, const TextRows& texts,
                                                   const DropoutKey& key,
                                                   const ClassifierView& view) const {
  if (!frames_) {
    const PackedRows rows = lay_out_texts(tape, texts, block_);
    if (!segments_) {
      return {encoder_.forward(tape, texts.ids, rows, key, view.attention, view.inputs), rows};
    }
    const Variable tokens = encoder_.embed(tape, texts.ids, rows, view.inputs);
    const Variable segments = segments_->forward(tape, segments_of(tape, texts), rows);
    return {encoder_.forward(tape, add(tape, tokens, segments), rows, key, view.attention), rows};
  }
  const FrameShape shape{.block = block_, .joints = joints_, .features = frame_features_};
  const FrameLayout layout = lay_out_frames(tape, texts, shape);
  Variable values = frame_values(tape, texts, shape, frames_->dtype());
  if (view.inputs != nullptr) values = *view.inputs = as_input(tape, values);
  const Variable x = frames_->forward(tape, values, layout.joints, layout.rows);
  return {encoder_.forward(tape, x, layout.rows, key, view.attention), layout.samples};
}

Variable ClassifierLayers::with_ngrams(Tape& tape, Variable pooled, const TextRows& texts,
                                       Variable* inputs) const {
  if (!ngrams_) return pooled;
  const Variable parts[] = {pooled, ngrams(tape, texts, inputs)};
  return concat_columns(tape, parts);
}

// The features of a text, a row each: the pooled encoder and, beside it, the n-grams.
Variable ClassifierLayers::features(Tape& tape, const TextRows& texts, const DropoutKey& key,
                                    const ClassifierView& view) const {
  const TextRows apart = read_apart(tape, texts);
  const Encoded encoded = encode(tape, apart, key, view);
  const Variable pooled = pooling_.forward(tape, encoded.x, encoded.texts);
  return compared(tape, with_ngrams(tape, pooled, apart, view.ngrams));
}

Variable ClassifierLayers::logits(Tape& tape, const TextRows& texts, const DropoutKey& key,
                                  const ClassifierView& view) const {
  Variable x = features(tape, texts, key, view);
  if (dropout_ > 0 && tape.mode() == TapeMode::kTrain) {
    x = dropout(tape, x, {dropout_, {key.seed, key.step, kMask}}, one_row_each(tape, texts));
  }
  return output_.forward(tape, x);
}

Variable ClassifierLayers::logits(Tape& tape, const TextRows& texts,
                                  const Tensor& token_table) const {
  const TextRows apart = read_apart(tape, texts);
  const PackedRows rows = lay_out_texts(tape, apart, block_);
  const Variable x = encoder_.forward(tape, apart.ids, rows, token_table);
  return output_.forward(tape,
                         compared(tape, with_ngrams(tape, pooling_.forward(tape, x, rows), apart)));
}

std::vector<double> ClassifierLayers::token_weights(Tape& tape, const TextRows& texts) const {
  const Encoded encoded = encode(tape, read_apart(tape, texts), {}, {});
  return pooling_.weights(encoded.x, encoded.texts);
}

}  // namespace fovea
