// SPDX-License-Identifier: Apache-2.0
#include "fovea/model/classifier.h"

#include <array>
#include <cmath>

#include "fovea/model/classifier_layers.h"

namespace fovea {

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

Classifier::Classifier(const ClassifierConfig& config, std::uint64_t seed, DType dtype)
    : Classifier(config, ParameterSetOptions{seed, dtype}) {}

Classifier::Classifier(const ClassifierConfig& config, const ParameterSetOptions& options)
    : config_(resolve(config)),
      parameters_(std::make_unique<ParameterSet>(options)),
      layers_(std::make_unique<ClassifierLayers>(config_, ParameterScope(*parameters_))) {}

Classifier::Classifier(Classifier&&) noexcept = default;
Classifier& Classifier::operator=(Classifier&&) noexcept = default;
Classifier::~Classifier() = default;

index Classifier::attentions() const { return layers_->attentions(); }

Variable Classifier::logits(Tape& tape, const TextRows& texts,
                            const ClassifierLossOptions& options) const {
  return layers_->logits(tape, texts, options.dropout,
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

index Classifier::token_table_columns() const { return layers_->token_table_columns(); }

Tensor Classifier::token_table(const Context& context) const {
  return layers_->encoder().token_table(context);
}

Variable Classifier::predictions(Tape& tape, const TextRows& texts,
                                 const Tensor& token_table) const {
  return predictions_of(tape, layers_->logits(tape, texts, token_table));
}

Variable Classifier::predictions_of(Tape& tape, Variable logits) const {
  if (config_.task == Task::kRegression) return logits;
  if (config_.task == Task::kSingleLabel) return softmax(tape, logits);
  const Variable y = tape.result(logits.rows(), config_.classes, logits.dtype());
  with_type(y.dtype(), [&]<class T>(std::type_identity<T>) {
    const bool is_binary = config_.task == Task::kBinary;
    (is_binary ? binary_predictions<T> : label_predictions<T>)(logits.value<T>(), y.value<T>());
  });
  return y;
}

std::vector<double> Classifier::token_weights(Tape& tape, const TextRows& texts) const {
  return layers_->token_weights(tape, texts);
}

}  // namespace fovea
