// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/objective.h"

#include <algorithm>
#include <cmath>

#include "fovea/metrics/classification.h"
#include "fovea/metrics/regression.h"

namespace fovea {

namespace {

Validation measure_classes(const SetPredictions& predictions, const Examples& truth,
                           index classes) {
  std::vector<std::int32_t> expected, predicted;
  for (index i = 0; i < truth.size(); ++i) {
    expected.push_back(truth.labels_of(i)[0]);
    const float* row = predictions.values.data() + i * classes;
    predicted.push_back(static_cast<std::int32_t>(std::max_element(row, row + classes) - row));
  }
  const ClassificationReport report =
      classification_report(confusion_matrix(expected, predicted, classes));
  return {.metrics = {{"accuracy", report.accuracy}, {"macro_f1", report.macro.f1}}};
}

Validation measure_labels(const SetPredictions& predictions, const Examples& truth, index labels) {
  std::vector<std::uint8_t> expected(predictions.values.size()), predicted(expected.size());
  for (index i = 0; i < truth.size(); ++i) {
    for (const std::int32_t label : truth.labels_of(i)) {
      expected[static_cast<std::size_t>(i * labels + label)] = 1;
    }
  }
  std::transform(predictions.values.begin(), predictions.values.end(), predicted.begin(),
                 [](float p) { return p >= 0.5f ? 1 : 0; });
  const auto rows = [&](const std::vector<std::uint8_t>& flags) {
    return Rows<const std::uint8_t>{flags.data(), truth.size(), labels, labels};
  };
  const MultilabelReport report = multilabel_report(rows(expected), rows(predicted));
  return {.metrics = {{"micro_f1", report.micro.f1}, {"macro_f1", report.macro.f1}}};
}

Validation measure_numbers(const SetPredictions& predictions, const Examples& truth,
                           const NumberScale& numbers) {
  std::vector<double> expected, predicted;
  for (const float value : truth.numbers) expected.push_back(numbers.from_model(value));
  for (const float value : predictions.values) predicted.push_back(numbers.from_model(value));
  const RegressionReport report = regression_report<double>(expected, predicted);
  Validation validation{.metrics = {{"rmse", std::sqrt(report.mse)}}};
  // There is none where all numbers are equal.
  if (std::isfinite(report.pearson)) validation.metrics.push_back({"pearson", report.pearson});
  return validation;
}

double found(const Validation& validation, std::string_view name, double otherwise) {
  for (const MetricValue& metric : validation.metrics) {
    if (metric.name == name) return metric.value;
  }
  return otherwise;
}

std::optional<double> metric_of(const Validation& validation, ClassifierTask task,
                                ClassifierMetric metric) {
  using enum ClassifierMetric;
  if (metric == kAuto) {
    metric = task == ClassifierTask::kRegression   ? kRmse
             : task == ClassifierTask::kMultiLabel ? kMicroF1
                                                   : kAccuracy;
  }
  switch (metric) {
    case kAuto:
    case kLoss:
      return std::nullopt;
    case kAccuracy:
      return found(validation, "accuracy", 0);
    case kMacroF1:
      return found(validation, "macro_f1", 0);
    case kMicroF1:  // of one class each, it is the accuracy
      return found(validation, "micro_f1", found(validation, "accuracy", 0));
    case kRmse:
      return -found(validation, "rmse", 0);
    case kPearson:
      return found(validation, "pearson", -1);
  }
  return std::nullopt;
}

}  // namespace

LabelledTexts view_of(const ExampleBatch& batch, const ClassifierConfig& config,
                      Rows<const float> frames) {
  return {.texts = {.ids = batch.ids,
                    .offsets = batch.offsets,
                    .samples = batch.samples,
                    .frames = frames},
          .labels = batch.labels,
          .values = batch.values.empty() ? Rows<const float>{}
                                         : Rows<const float>{batch.values.data(), batch.size(),
                                                             config.classes, config.classes}};
}

std::optional<SetPredictions> predict_set(Tape& tape, const Classifier& model,
                                          const ExampleSet& set,
                                          const std::vector<double>& class_weights,
                                          const std::function<bool()>& interrupted,
                                          Rows<const float> frames) {
  const ClassifierLossOptions options{.class_weights = class_weights};
  SetPredictions all;
  for (index i = 0; i * set.batch_size < set.examples.size(); ++i) {
    if (interrupted && interrupted()) return std::nullopt;
    const ExampleBatch batch = batch_in_order(set.examples, set.target, set.batch_size, i);
    const LabelledTexts texts = view_of(batch, model.config(), frames);
    tape.reset(TapeMode::kInference);
    const Variable logits = model.logits(tape, texts.texts);
    all.loss += double{model.loss_of(tape, logits, texts, options).value<float>()[0][0]};
    all.weight += model.loss_weight(texts, options);
    const Variable predictions = model.predictions_of(tape, logits);
    const Rows<const float> values = predictions.value<float>();
    for (index s = 0; s < values.rows; ++s) {
      all.values.insert(all.values.end(), values[s], values[s] + values.columns);
    }
  }
  return all;
}

Validation measure(const SetPredictions& predictions, const Examples& truth,
                   const ClassifierConfig& config, const NumberScale& numbers,
                   ClassifierMetric metric) {
  Validation validation = config.task == ClassifierTask::kRegression
                              ? measure_numbers(predictions, truth, numbers)
                          : config.task == ClassifierTask::kMultiLabel
                              ? measure_labels(predictions, truth, config.classes)
                              : measure_classes(predictions, truth, config.classes);
  validation.loss = predictions.mean_loss();
  validation.score = metric_of(validation, config.task, metric);
  if (validation.score) validation.score = score_with_tie(*validation.score, validation.loss);
  return validation;
}

Hits hits_of(Variable logits, Vec<const std::int32_t> labels, ClassifierTask task) {
  Hits hits;
  if (task == ClassifierTask::kRegression || task == ClassifierTask::kMultiLabel) return hits;
  const Rows<const float> rows = logits.value<float>();
  for (index n = 0; n < rows.rows; ++n) {
    if (labels[n] < 0) continue;
    const float* const row = rows[n];
    const index likeliest = task == ClassifierTask::kBinary
                                ? index{row[0] > 0}
                                : std::max_element(row, row + rows.columns) - row;
    hits += {.right = likeliest == labels[n], .of = 1};
  }
  return hits;
}

ClassifierObjective::ClassifierObjective(const Context& context, const Classifier& model,
                                         ClassifierTexts texts)
    : ObjectiveOf(context, model, texts.training, {texts.accumulate, texts.seed},
                  {.class_weights = texts.class_weights}),
      texts_(texts) {}

std::string_view loss_unit_of(const ClassifierConfig& config) {
  if (config.task == ClassifierTask::kRegression) return "squared error of the normalised numbers";
  return config.features > 0 ? "nats per sample" : "nats per text";
}

double ClassifierObjective::weight_of(const ExampleBatch& batch) const {
  if (batch.size() == 0) return 0;
  return model_.loss_weight(view_of(batch, model_.config(), texts_.frames), options_);
}

Variable ClassifierObjective::loss_of_batch(const ExampleBatch& batch) {
  const LabelledTexts texts = view_of(batch, model_.config(), texts_.frames);
  const Variable logits = model_.logits(tape_, texts.texts, options_);
  hits_ = hits_of(logits, texts.labels, model_.config().task);
  return model_.loss_of(tape_, logits, texts, options_);
}

std::optional<Validation> ClassifierObjective::measure_set(const ExampleSet& set,
                                                           const std::function<bool()>& interrupted,
                                                           BestUses* uses) {
  const auto predictions =
      predict_set(free_tape(), model_, set, texts_.class_weights, interrupted, texts_.frames);
  if (!predictions) return std::nullopt;
  Validation found =
      measure(*predictions, set.examples, model_.config(), texts_.numbers, texts_.metric);
  if (uses != nullptr) {
    uses->take(predictions->values, set.examples, model_.config(), found.goodness());
  }
  return found;
}

}  // namespace fovea
