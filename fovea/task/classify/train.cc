// SPDX-License-Identifier: Apache-2.0
// What the training of a classifier has of its own.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/linear/decide.h"
#include "fovea/metrics/classification.h"
#include "fovea/metrics/regression.h"
#include "fovea/model/pass_plan.h"
#include "fovea/task/classify/linear.h"
#include "fovea/task/classify/run.h"
#include "fovea/task/embeddings.h"
#include "fovea/task/run.h"
#include "fovea/task/run_flow.h"
#include "fovea/text/utf8.h"
#include "fovea/train/model_folder.h"

namespace fovea {

void keep_found(ClassifierTextOptions& given, const ClassifierTextOptions& began) {
  if (given.tokenizer == "auto") given.tokenizer = began.tokenizer;
  if (given.max_length == 0) given.max_length = began.max_length;
}

void keep_found(ClassifierSettings& given, const ClassifierSettings& began) {
  keep_found(given.text, began.text);
  ClassifierConfig& is = given.model;
  const ClassifierConfig& was = began.model;
  is.vocabulary = was.vocabulary;
  is.classes = was.classes;
  is.features = was.features;
  is.joints = was.joints;
  is.task = was.task;
  is.block = was.block;
  if (given.linear.word_ngrams == "auto") given.linear.word_ngrams = began.linear.word_ngrams;
  if (given.linear.char_ngrams == "auto") given.linear.char_ngrams = began.linear.char_ngrams;
  if (is.ngrams != 1 && is.buckets == 0) is.buckets = was.buckets;
}

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

bool are_uneven_classes(const Examples& truth, const ClassifierConfig& config) {
  const bool has_classes =
      config.task == ClassifierTask::kBinary || config.task == ClassifierTask::kSingleLabel;
  return has_classes && are_uneven(count_texts(truth, config.classes));
}

}  // namespace

std::string_view measured_by(ClassifierMetric metric, ClassifierTask task, bool is_uneven) {
  using enum ClassifierMetric;
  switch (metric) {
    case kAuto:
      if (task == ClassifierTask::kRegression) return "rmse";
      if (task == ClassifierTask::kMultiLabel) return "micro_f1";
      return is_uneven ? "macro_f1" : "accuracy";
    case kLoss:
      return "loss";
    case kAccuracy:
      return "accuracy";
    case kMacroF1:
      return "macro_f1";
    case kMicroF1:  // of one class each, it is the accuracy
      return task == ClassifierTask::kMultiLabel ? "micro_f1" : "accuracy";
    case kRmse:
      return "rmse";
    case kPearson:
      return "pearson";
  }
  return "loss";
}

double goodness_by(std::string_view measure, double loss, std::span<const MetricValue> metrics) {
  if (measure == "loss") return -loss;
  for (const MetricValue& metric : metrics) {
    if (metric.name == measure) return measure == "rmse" ? -metric.value : metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

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
  const std::string_view by = measured_by(metric, config.task, are_uneven_classes(truth, config));
  if (by == "loss") return validation;
  const double score = goodness_by(by, validation.loss, validation.metrics);
  // A correlation that is not defined is as bad as one can be.
  validation.score = score_with_tie(std::isnan(score) ? -1 : score, validation.loss);
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

std::string_view loss_unit_of(const ClassifierConfig& config) {
  if (config.task == ClassifierTask::kRegression) return "squared error of the normalised numbers";
  return config.features > 0 ? "nats per sample" : "nats per text";
}

double ClassifierObjective::weight_of(const ExampleBatch& batch) const {
  if (batch.size() == 0) return 0;
  return model_.loss_weight(view_of(batch, model_.config(), run_.frames.rows()), options_);
}

Variable ClassifierObjective::loss_of_batch(const ExampleBatch& batch) {
  const LabelledTexts texts = view_of(batch, model_.config(), run_.frames.rows());
  const Variable logits = model_.logits(tape_, texts.texts, options_);
  hits_ = hits_of(logits, texts.labels, model_.config().task);
  return model_.loss_of(tape_, logits, texts, options_);
}

std::optional<Validation> ClassifierObjective::measured(const ExampleSet& set,
                                                        const Interrupted& interrupted,
                                                        BestUses* uses) {
  const auto predictions =
      predict_set(free_tape(), model_, set, run_.class_weights, interrupted, run_.frames.rows());
  if (!predictions) return std::nullopt;
  Validation found = measure(*predictions, set.examples, model_.config(), run_.outputs.numbers,
                             run_.settings.text.metric);
  if (uses != nullptr) {
    uses->take(predictions->values, set.examples, model_.config(), found.goodness());
  }
  return found;
}

namespace {

// The rows of a batch of so many tokens or time steps.
index rows_of(const ClassifierConfig& config, index tokens) {
  return tokens * std::max<index>(config.joints, 1);
}

// Ids and targets of an update's batches, and the predictions of the validation set
// with their confusion matrix.
double batch_bytes(const ClassifierRun& run) {
  const ClassifierConfig& config = run.settings.model;
  const auto columns = static_cast<double>(config.classes);
  const double ids = sizeof(token) * static_cast<double>(run.settings.recipe.accumulate) *
                     static_cast<double>(run.training->largest_batch());
  const double values =
      sizeof(float) * columns *
      static_cast<double>(run.settings.recipe.accumulate * run.settings.text.batch_size);
  if (!run.validation) return ids + values;
  // A vector that grows exists twice; flags of what is true and predicted come beside it.
  const index trained = run.settings.recipe.evaluate_training ? run.training->examples().size() : 0;
  const auto texts = static_cast<double>(std::max(run.validation->examples().size(), trained));
  const bool has_matrix = config.task == ClassifierTask::kSingleLabel;
  const double confusion = has_matrix ? sizeof(index) * columns * columns : 0;
  return ids + values + confusion +
         texts * (columns * (3 * sizeof(float) + 2) + 2 * sizeof(double));
}

double update_gradients(const ClassifierRun& run) {
  const ClassifierConfig& c = run.settings.model;
  const index tokens = run.settings.recipe.accumulate * run.training->largest_batch();
  const bool is_frozen = c.freeze_embeddings || freezes_embeddings(run.settings.from);
  const UsedTable tables[] = {{c.vocabulary, c.width, tokens, is_frozen},
                              {c.buckets, c.ngram_width, (c.ngrams - 1) * tokens}};
  const index of_table = freezes_embeddings(run.settings.from) ? c.vocabulary * c.width : 0;
  return gradient_bytes(run.settings.recipe.optimizer, parameter_count(c) - run.frozen + of_table,
                        tables);
}

double tokens_in(const Examples& examples) { return static_cast<double>(examples.stream.size()); }

double tokens_of_update(const ClassifierRun& run) {
  return tokens_in(run.training->examples()) /
         static_cast<double>(run.training->updates_per_epoch());
}

}  // namespace

// A model of numbers, or a linear one, has no tokenizer.
std::vector<NamedFile> model_files(const ClassifierRun& run) {
  const std::string config = config_text(run.settings, run.outputs);
  if (run.pieces.tokenizer) return first_files(config, run.kept);
  if (!run.tokenizer) return {{"config.json", config}};
  return first_files(config, run.tokenizer->data());
}

template <>
struct TaskOf<ClassifierRun> {
  using Objective = ClassifierObjective;

  static std::vector<NamedFile> files(const ClassifierRun& run) { return model_files(run); }

  static Classifier make(const ClassifierRun& run) {
    Classifier model(run.settings.model, run.settings.recipe.seed);
    if (run.from_base) load_encoder_base(run.settings.from.base, model.parameters());
    freeze_encoder(model.parameters(), run.settings.model, run.settings.from);
    if (run.vectors) start_with_vectors(model.parameters(), "embedding.tokens", *run.vectors);
    return model;
  }

  static index tokens(const ClassifierRun& run) { return run.training->largest_batch(); }

  static TextLoad load(const auto& set, TapeMode mode, const ClassifierRun& run) {
    TextLoad load{.texts = run.settings.text.batch_size, .tape = batch_load(run, mode)};
    load.tape.tokens = rows_of(run.settings.model, set.largest_batch());
    load.tape.sequences = load.texts;
    return load;
  }

  static PassCost plan(const Context& context, const ClassifierRun& run, const TextLoad& load) {
    return plan_pass(context, run.settings.model, load, adapters_for_plan<Classifier>(run));
  }

  static OwnBytes bytes(const Context&, const ClassifierRun& run) {
    return with_adapters(
        run, {.gradients = update_gradients(run),
              .batches = batch_bytes(run),
              .vocabulary = run.pieces.tokenizer ? vocabulary_bytes(run.kept)
                                                 : vocabulary_bytes(run.tokenizer.get()),
              .frozen = run.frozen});
  }

  static RowCounts rows(const ClassifierRun& run) {
    RowCounts rows{.of_update = tokens_of_update(run)};
    if (run.validation) rows.evaluated = tokens_in(run.validation->examples());
    if (run.settings.recipe.evaluate_training) {
      rows.evaluated += tokens_in(run.training->examples());
    }
    return rows;
  }

  // Attention takes time with the square of each length, the last layer for each text.
  static double flops(const Context& context, const ClassifierRun& run) {
    const Examples& examples = run.training->examples();
    std::vector<index> lengths;
    for (index i = 0; i < examples.size(); ++i) lengths.push_back(examples.length(i));
    TextLoad load = TaskOf::load(*run.training, TapeMode::kTrain, run);
    load.tape = LengthGroups(lengths).load_of(load.tape, lengths);
    load.texts = static_cast<index>(load.tape.lengths.size());
    const index tokens = load.tape.tokens;
    load.tape.tokens = rows_of(run.settings.model, tokens);
    return plan(context, run, load).flops * tokens_of_update(run) / static_cast<double>(tokens);
  }
};

RunCost cost_of(const ClassifierRun& run) {
  return run.linear ? linear_cost(run) : cost_of<ClassifierRun>(run);
}

double flops_of_update(const Context& context, const ClassifierRun& run) {
  return run.linear ? 0 : flops_of_update<ClassifierRun>(context, run);
}

double training_memory(const Context& context, const ClassifierRun& run, index checkpoint_bytes) {
  return run.linear ? linear_memory(context, run)
                    : training_memory<ClassifierRun>(context, run, checkpoint_bytes);
}

template double added_memory(const Context&, const ClassifierRun&);

RunTime estimate_run_time(const Context& context, const ClassifierRun& run, const RunState& done) {
  return run.linear ? linear_time(context, run)
                    : estimate_run_time<ClassifierRun>(context, run, done);
}

namespace {

// The fingerprint of the texts has the numbers of their labels, not the names.
void require_same_labels(const std::filesystem::path& folder, const ClassifierRun& run) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder / "config.json", ignored)) return;
  const std::string name = (folder / "config.json").string();
  const std::vector<std::string> began =
      classifier_config_from_text(read_model_file(folder, "config.json"), name).outputs.labels;
  const std::vector<std::string>& now = run.outputs.labels;
  const auto [was, is] = std::mismatch(began.begin(), began.end(), now.begin(), now.end());
  if (was == began.end() && is == now.end()) return;
  throw Error(
      ErrorCode::kConfig,
      fmt::format("cannot resume: the labels are not those of the run: {}, it began with {}",
                  is == now.end() ? "fewer" : excerpt(*is),
                  was == began.end() ? "fewer" : excerpt(*was)),
      "give the labels that the run began with, or train into another folder");
}

}  // namespace

TrainResult train_classifier(const Context& context, const ClassifierRun& run,
                             const std::filesystem::path& folder, StartAt start,
                             TrainingObserver& observer) {
  if (start.resume || start.checkpoint) require_same_labels(folder, run);
  if (run.linear) return train_linear(context, run, folder, start, observer);
  return RunTraining(context, run, folder, std::move(start)).train(run.settings.recipe, observer);
}

}  // namespace fovea
