// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "fovea/base/option.h"
#include "fovea/config/field.h"
#include "fovea/model/layer_table.h"
#include "fovea/model/ngram_ids.h"
#include "fovea/model/text_batch.h"

namespace fovea {

namespace {

void check_classes(const ClassifierConfig& c) {
  if (c.task == ClassifierTask::kBinary) {
    require_option(c.classes == 2, "classes", c.classes, "2, as --task binary has");
    return;
  }
  check_size("classes", c.classes, c.task == ClassifierTask::kSingleLabel ? 2 : 1);
}

void resolve_ngrams(ClassifierConfig& c) {
  constexpr index kUsualLength = 2, kUsualWidth = 16, kUsualBuckets = 500000;
  const bool is_bag = c.encoder.empty() && c.features == 0;
  if (c.ngrams == 0) c.ngrams = is_bag ? kUsualLength : 1;
  check_size("ngrams", c.ngrams, 1, kLongestNgram);
  require_option(c.features == 0 || c.ngrams == 1,
                 Hint{"leave --ngrams out: numbers have no tokens"}, "ngrams", c.ngrams,
                 "1 with --input npz");
  if (c.ngrams == 1) {
    require_option(c.ngram_width == 0, Hint{"leave it out, or add --ngrams 2"}, "ngram_width",
                   c.ngram_width, "0 without --ngrams");
    require_option(c.buckets == 0, Hint{"leave it out, or add --ngrams 2"}, "buckets", c.buckets,
                   "0 without --ngrams");
    return;
  }
  if (c.ngram_width == 0) c.ngram_width = kUsualWidth;
  if (c.buckets == 0) c.buckets = kUsualBuckets;
  check_size("ngram_width", c.ngram_width, 1);
  check_size("buckets", c.buckets, 1);
}

// The separator of pairs is a token that no text has.
void check_pairs(const ClassifierConfig& c) {
  if (c.pair_encoder == PairEncoder::kNone) return;
  check(c.features == 0, "classifier: rows of numbers are no pairs of texts");
  check_size("vocabulary", c.vocabulary, 2);
}

void resolve_kind(ClassifierConfig& c) {
  using enum ClassifierModel;
  if ((c.kind == kPretrained) != c.has_base()) {
    fail_option("model", to_string(c.kind), c.has_base() ? "pretrained" : "a model without --base",
                ErrorCode::kOptionValue, Hint{"name the model to begin from: --base MODEL"});
  }
  if (c.kind == kAuto) c.kind = c.encoder.empty() ? kBag : kEncoder;
  if (c.kind == kEncoder && c.encoder.empty()) {
    fail_option("model", "encoder", "a model without --encoder", ErrorCode::kOptionValue,
                Hint{"name its layers, such as --encoder conv3"});
  }
  if (c.kind != kEncoder && !c.encoder.empty()) {
    fail_option("model", to_string(c.kind), "encoder, as --encoder needs", ErrorCode::kOptionValue,
                Hint{"leave --encoder or --model out"});
  }
}

// Maxima over time are a part of a TextCNN.
void resolve_pooling(ClassifierConfig& c, const std::vector<SizedStage>& stages) {
  if (!ends_with_text_cnn(stages)) return;
  if (c.pooling != PoolingKind::kMean && c.pooling != PoolingKind::kMax) {
    throw Error(ErrorCode::kOptionValue,
                fmt::format("--pooling {}: textcnn in --encoder takes the maximum over time",
                            to_string(c.pooling)),
                "leave --pooling out");
  }
  c.pooling = PoolingKind::kMax;
}

}  // namespace

ClassifierConfig resolve(ClassifierConfig c) {
  check_ranges(c);
  resolve_kind(c);
  if (c.kind == ClassifierModel::kLinear) {
    check_classes(c);
    return c;
  }
  if (c.has_base()) {
    c.ngrams = 1;
    check_layers(c);
    check_classes(c);
    if (c.pair_encoder == PairEncoder::kBi) {
      fail_option("pair_encoder", "bi", "cross, as a base reads pairs", ErrorCode::kOptionValue,
                  Hint{"leave it out"});
    }
    return c;
  }
  resolve_encoder(c);
  resolve_ngrams(c);
  check_classes(c);
  check_pairs(c);
  const std::vector<SizedStage> stages = sized_stages(c);
  check_stages(c, stages);
  resolve_pooling(c, stages);
  return c;
}

ClassifierConfig classifier_on(const BertConfig& layers) {
  ClassifierConfig c;
  take_layers(c, layers);
  c.kind = ClassifierModel::kPretrained;
  c.ngrams = 1;
  c.output_dropout = layers.head_dropout;
  return c;
}

std::vector<SizedStage> sized_stages(const ClassifierConfig& c) {
  if (c.encoder.empty()) return {};
  return size_stages(c, parse_encoder(c.encoder));
}

std::int32_t pair_separator(const ClassifierConfig& c) {
  if (c.has_base()) return static_cast<std::int32_t>(c.base.separator);
  return c.pair_encoder == PairEncoder::kNone ? -1 : static_cast<std::int32_t>(c.vocabulary - 1);
}

index parameter_count(const ClassifierConfig& config) {
  ParameterSet shapes({.memory = ParameterMemory::kShapesOnly});
  const ClassifierLayers layers(resolve(config), ParameterScope(shapes));
  return shapes.size();
}

index frozen_count(const ClassifierConfig& c) {
  return c.freeze_embeddings ? c.vocabulary * c.width : 0;
}

namespace {

using Task = ClassifierTask;

bool has_classes(Task task) { return task == Task::kSingleLabel || task == Task::kBinary; }

void check_batch(const ClassifierConfig& c, const LabelledTexts& batch) {
  const index S = std::max<index>(batch.texts.offsets.size - 1, 0);
  if (has_classes(c.task)) {
    check(batch.labels.size == S, "classifier: {} labels for {} texts", batch.labels.size, S);
    return;
  }
  check(batch.values.rows == S && batch.values.columns == c.classes,
        "classifier: values must be [{}, {}], a row for each text; they are [{}, {}]", S, c.classes,
        batch.values.rows, batch.values.columns);
}

void check_options(const ClassifierConfig& c, const ClassifierLossOptions& options) {
  check(options.class_weights.empty() || options.class_weights.size == c.classes,
        "classifier: {} class weights for {} classes", options.class_weights.size, c.classes);
  if (c.task != Task::kRegression) return;
  check(options.class_weights.empty() && options.label_smoothing == 0,
        "classifier: a regression has no class weights and no label smoothing");
}

Targets targets_of(const LabelledTexts& batch, const ClassifierLossOptions& options) {
  return {
      .ids = batch.labels, .weights = options.class_weights, .smoothing = options.label_smoothing};
}

// The values in the type of the model, which live as long as the tape.
Variable constant_values(Tape& tape, Rows<const float> values, DType dtype) {
  const Variable y = tape.result(values.rows, values.columns, dtype);
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    for (index s = 0; s < values.rows; ++s) {
      std::copy_n(values[s], values.columns, y.value<T>()[s]);
    }
  });
  return y;
}

// The classes as values [sequences, 1] of the single logit: 0, 1, or -1.
Variable constant_labels(Tape& tape, Vec<const std::int32_t> labels, DType dtype) {
  const Variable y = tape.result(labels.size, 1, dtype);
  with_type(dtype, [&]<class T>(std::type_identity<T>) {
    std::copy(labels.begin(), labels.end(), y.value<T>().data);
  });
  return y;
}

// 1 / (1 + exp(-x)), and what is left of 1.
std::array<double, 2> probabilities_of(double x) {
  const double e = std::exp(-std::abs(x)), large = 1 / (1 + e), small = e / (1 + e);
  return x < 0 ? std::array{small, large} : std::array{large, small};
}

// The probabilities of both classes, from one logit for each text.
template <class T>
void binary_predictions(Rows<const T> logits, Rows<T> y) {
  for (index s = 0; s < y.rows; ++s) {
    const auto [one, zero] = probabilities_of(logits[s][0]);
    y[s][0] = static_cast<T>(zero);
    y[s][1] = static_cast<T>(one);
  }
}

template <class T>
void label_predictions(Rows<const T> logits, Rows<T> y) {
  for (index s = 0; s < y.rows; ++s) {
    for (index k = 0; k < y.columns; ++k) {
      y[s][k] = static_cast<T>(probabilities_of(logits[s][k])[0]);
    }
  }
}

}  // namespace

Variable Classifier::logits(Tape& tape, const TextRows& texts,
                            const ClassifierLossOptions& options) const {
  return layers().logits(tape, texts, options.dropout,
                         {options.attention, options.inputs, options.ngrams});
}

Variable Classifier::loss(Tape& tape, const LabelledTexts& batch,
                          const ClassifierLossOptions& o) const {
  check_batch(config_, batch);
  check_options(config_, o);
  if (batch.texts.offsets.size <= 1) return zero_loss(tape);
  return loss_of(tape, logits(tape, batch.texts, o), batch, o);
}

Variable Classifier::loss_of(Tape& tape, Variable x, const LabelledTexts& batch,
                             const ClassifierLossOptions& o) const {
  check_batch(config_, batch);
  check_options(config_, o);
  const DType dtype = x.dtype();
  const Vec<const double> weights = o.class_weights;
  switch (config_.task) {
    case Task::kSingleLabel:
      return cross_entropy(tape, x, targets_of(batch, o), o.scale);
    case Task::kBinary: {
      count_targets(targets_of(batch, o), 2);
      BinaryWeights of_classes{.smoothing = o.label_smoothing};
      if (!weights.empty()) {
        of_classes.zeros = {weights.data, 1};
        of_classes.ones = {weights.data + 1, 1};
      }
      return binary_cross_entropy(tape, x, constant_labels(tape, batch.labels, dtype), of_classes,
                                  o.scale);
    }
    case Task::kMultiLabel:
      return binary_cross_entropy(tape, x, constant_values(tape, batch.values, dtype),
                                  {.ones = weights, .smoothing = o.label_smoothing}, o.scale);
    case Task::kRegression:
      break;
  }
  return squared_error(tape, x, constant_values(tape, batch.values, dtype), o.scale);
}

double Classifier::loss_weight(const LabelledTexts& batch,
                               const ClassifierLossOptions& options) const {
  check_batch(config_, batch);
  check_options(config_, options);
  if (has_classes(config_.task)) return weigh_targets(targets_of(batch, options), config_.classes);
  index count = batch.values.rows * batch.values.columns;
  if (config_.task == Task::kMultiLabel) {
    for (index s = 0; s < batch.values.rows; ++s) {
      count -= std::count(batch.values[s], batch.values[s] + config_.classes, -1.0f);
    }
  }
  return static_cast<double>(count);
}

Variable Classifier::predictions(Tape& tape, const TextRows& texts) const {
  return predictions_of(tape, logits(tape, texts));
}

index Classifier::token_table_columns() const { return layers().token_table_columns(); }

Tensor Classifier::token_table(const Context& context) const {
  return layers().encoder().token_table(context);
}

Variable Classifier::predictions(Tape& tape, const TextRows& texts,
                                 const Tensor& token_table) const {
  return predictions_of(tape, layers().logits(tape, texts, token_table));
}

Variable predictions_of(Tape& tape, Variable logits, ClassifierTask task) {
  if (task == Task::kRegression) return logits;
  if (task == Task::kSingleLabel) return softmax(tape, logits);
  const bool is_binary = task == Task::kBinary;
  const Variable y = tape.result(logits.rows(), is_binary ? 2 : logits.columns(), logits.dtype());
  with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
    (is_binary ? binary_predictions<T> : label_predictions<T>)(logits.value<T>(), y.value<T>());
  });
  return y;
}

std::vector<double> Classifier::token_weights(Tape& tape, const TextRows& texts) const {
  return layers().token_weights(tape, texts);
}

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

// The layers of a base, and the head that says what a text is.
BertConfig with_head(const ClassifierConfig& c) {
  BertConfig layers = pretrained_layers(c);
  layers.pools = true;
  layers.head = BertHead::kText;
  layers.outputs = logit_count(c);
  layers.head_dropout = c.output_dropout;
  return layers;
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
      frames_(c.features == 0 ? std::nullopt
                              : std::optional<FrameEmbedding>(std::in_place, frame_options(c),
                                                              scope["input"])) {
  if (c.has_base()) {
    pretrained_.emplace(with_head(c), scope);
    return;
  }
  encoder_.emplace(c, sized_stages(c), scope);
  if (c.pair_encoder == PairEncoder::kCross) {
    segments_.emplace(
        EmbeddingOptions{.vocabulary = 2, .width = c.width, .position = PositionKind::kNone},
        scope["segments"]);
  }
  pooling_.emplace(c.pooling, encoder_->width(), scope["pooling"],
                   c.revision == Revision::kFirst ? 0 : reverse_columns(sized_stages(c)));
  if (c.ngrams > 1) {
    ngrams_.emplace(
        EmbeddingBagOptions{.rows = c.buckets, .width = c.ngram_width, .mode = BagMode::kRootMean},
        scope["ngrams"]);
  }
  output_.emplace(output_options(c, (is_bi_ ? 4 : 1) * (encoder_->width() + c.ngram_width)),
                  scope["output"]);
}

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
      return {encoder_->forward(tape, texts.ids, rows, key, view.attention, view.inputs), rows};
    }
    const Variable tokens = encoder_->embed(tape, texts.ids, rows, view.inputs);
    const Variable segments = segments_->forward(tape, segments_of(tape, texts), rows);
    return {encoder_->forward(tape, add(tape, tokens, segments), rows, key, view.attention), rows};
  }
  const FrameShape shape{.block = block_, .joints = joints_, .features = frame_features_};
  const FrameLayout layout = lay_out_frames(tape, texts, shape);
  Variable values = frame_values(tape, texts, shape, frames_->dtype());
  if (view.inputs != nullptr) values = *view.inputs = as_input(tape, values);
  const Variable x = frames_->forward(tape, values, layout.joints, layout.rows);
  return {encoder_->forward(tape, x, layout.rows, key, view.attention), layout.samples};
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
  const Variable pooled = pooling_->forward(tape, encoded.x, encoded.texts);
  return compared(tape, with_ngrams(tape, pooled, apart, view.ngrams));
}

Variable ClassifierLayers::logits(Tape& tape, const TextRows& texts, const DropoutKey& key,
                                  const ClassifierView& view) const {
  if (pretrained_) {
    const auto types = separator_ < 0 ? Vec<const std::int32_t>() : segments_of(tape, texts);
    const BertRows rows = pretrained_->forward(tape, {.texts = texts,
                                                      .types = types,
                                                      .dropout = key,
                                                      .attention = view.attention,
                                                      .inputs = view.inputs});
    return pretrained_->logits(tape, rows, {}, key);
  }
  Variable x = features(tape, texts, key, view);
  if (dropout_ > 0 && tape.mode() == TapeMode::kTrain) {
    x = dropout(tape, x, {dropout_, {key.seed, key.step, kMask}}, one_row_each(tape, texts));
  }
  return output_->forward(tape, x);
}

Variable ClassifierLayers::logits(Tape& tape, const TextRows& texts,
                                  const Tensor& token_table) const {
  const TextRows apart = read_apart(tape, texts);
  const PackedRows rows = lay_out_texts(tape, apart, block_);
  const Variable x = encoder_->forward(tape, apart.ids, rows, token_table);
  return output_->forward(
      tape, compared(tape, with_ngrams(tape, pooling_->forward(tape, x, rows), apart)));
}

std::vector<double> ClassifierLayers::token_weights(Tape& tape, const TextRows& texts) const {
  check(pooling_.has_value(), "classifier: the layers of a base have no weights of tokens");
  const Encoded encoded = encode(tape, read_apart(tape, texts), {}, {});
  return pooling_->weights(encoded.x, encoded.texts);
}

PassCost plan_pass(const Context& context, const ClassifierConfig& config, const TextLoad& load,
                   const ModelChange<Classifier>& change) {
  if (load.listed() > kMostPlanned) return extrapolated(context, config, load, change);
  const ClassifierConfig c = resolve(config);
  TapeLoad tokens = load.tape;
  const index rows_of_step = std::max<index>(c.joints, 1);
  tokens.tokens /= rows_of_step;
  tokens.sequences = std::min(load.texts, tokens.tokens);
  PlannedRows rows(tokens, c.block, c.features > 0 ? tokens.tokens : c.vocabulary);
  if (pair_separator(c) >= 0) rows.separate(pair_separator(c));
  const auto texts = static_cast<index>(rows.offsets.size()) - 1;
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(texts));
  return plan_changed<Classifier>(
      context, tokens, [&](const auto& options) { return Classifier(c, options); }, change,
      [&](Tape& tape, const Classifier& model, std::span<HeadStatistics> seen) {
        LabelledTexts batch{.texts = rows.view(), .labels = labels};
        const Tensor values = Tensor::empty({texts, c.classes});
        const Tensor frames = Tensor::empty({tokens.tokens, rows_of_step * c.features});
        batch.values = values.rows<float>();
        if (c.features > 0) batch.texts.frames = frames.rows<float>();
        return model.loss(tape, batch, {.attention = seen});
      });
}

}  // namespace fovea
