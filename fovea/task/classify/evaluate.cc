// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fovea/base/bytes.h"
#include "fovea/base/machine.h"
#include "fovea/base/option.h"
#include "fovea/config/suggest.h"
#include "fovea/data/table/labelled_reader.h"
#include "fovea/linear/decide.h"
#include "fovea/metrics/probabilities.h"
#include "fovea/report/mistake_plots.h"
#include "fovea/task/classify/notices.h"
#include "fovea/task/classify/text_predictor.h"
#include "fovea/task/score_json.h"
#include "fovea/text/keyed_hash.h"
#include "fovea/text/utf8.h"

namespace fovea {

namespace {

static_assert(kMostClassesOfMatrix == kMostConfusionClasses);

Json json_of_labels(const ClassifierScore& score) {
  Json::Array list;
  for (std::size_t k = 0; k < score.labels.size(); ++k) {
    Json::Object label;
    add(label, "label", score.labels[k]);
    add(label, "support", score.support()[k]);
    add(label, "predicted", score.predicted()[k]);
    if (!score.thresholds.empty()) add(label, "threshold", score.thresholds[k]);
    const ScoresOf<Interval>& scores = score.by_label()[k];
    add_scores(label, scores);
    list.emplace_back(std::move(label));
  }
  return list;
}

Json json_of_table(const ReliabilityTable& table) {
  Json::Array bins;
  for (const ReliabilityBin& bin : table.bins) {
    Json::Object object;
    add(object, "low", bin.low);
    add(object, "high", bin.high);
    add(object, "count", bin.count);
    add(object, "confidence", bin.confidence);
    add(object, "accuracy", bin.accuracy);
    bins.emplace_back(std::move(object));
  }
  Json::Object object;
  add(object, "ece", table.ece);
  add(object, "mce", table.mce);
  add(object, "bins", std::move(bins));
  return object;
}

Json json_of_curves(const std::vector<LabelCurve>& curves) {
  Json::Array all;
  for (const LabelCurve& curve : curves) {
    Json::Array points;
    for (const PrecisionRecallPoint& p : curve.points) {
      points.emplace_back(Json::Array{p.recall, p.precision, p.threshold});
    }
    Json::Object object;
    add(object, "label", curve.label ? Json(*curve.label) : Json());
    add(object, "points", std::move(points));
    all.emplace_back(std::move(object));
  }
  return all;
}

Json json_of_mistake(const Mistake& mistake, ClassifierTask task) {
  Json::Object object;
  add(object, "file", mistake.file);
  add(object, "line", mistake.line);
  add(object, "text", mistake.text);
  add(object, "loss", mistake.loss);
  if (task == ClassifierTask::kMultiLabel) {
    add(object, "labels", json_of_texts(mistake.truth));
    add(object, "predicted", json_of_texts(mistake.predicted));
    return object;
  }
  add(object, "label", mistake.truth.at(0));
  add(object, "predicted", mistake.predicted.at(0));
  if (task == ClassifierTask::kRegression) return object;
  add(object, "label_probability", mistake.truth_probability);
  add(object, "probability", mistake.probability);
  return object;
}

std::string title_of(const ClassifierScore& score) {
  return fmt::format("{} texts, {} {}", score.examples, score.labels.size(),
                     score.classes ? "classes" : "labels");
}

ReliabilityPlot plot_of(const ClassifierScore& score) {
  ReliabilityPlot plot{.title = "reliability",
                       .subtitle = fmt::format("{}, expected calibration error {:.4f}",
                                               title_of(score), score.reliability->ece)};
  if (score.multilabel) {
    plot.x_label = "probability";
    plot.y_label = "share that has the label";
  }
  for (const ReliabilityBin& bin : score.reliability->bins) {
    plot.bars.push_back({bin.low, bin.high, bin.count, bin.confidence, bin.accuracy});
  }
  return plot;
}

}  // namespace

double loss_of_probability(float p) {
  constexpr float kEpsilon = std::numeric_limits<float>::epsilon();
  return -std::log(double{std::clamp(p, kEpsilon, 1 - kEpsilon)});
}

Json json_of_score(const ClassifierScore& score) {
  Json::Object object;
  add(object, "task", std::string(to_string(score.task)));
  add(object, "examples", score.examples);
  add(object, "truncated", score.truncated);
  add(object, "confidence", score.confidence);
  if (score.multilabel) add(object, "threshold", score.threshold);
  if (!score.thresholds.empty()) add(object, "threshold_rule", score.threshold_rule);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    add(object, name, json_of_interval(interval));
  });
  if (!score.numbers) add(object, "labels", json_of_labels(score));
  if (score.confusion && score.confusion->classes <= kMostClassesOfMatrix) {
    add(object, "confusion", json_of_matrix(*score.confusion));
  }
  if (score.reliability) add(object, "reliability", json_of_table(*score.reliability));
  if (!score.precision_recall.empty()) {
    add(object, "precision_recall", json_of_curves(score.precision_recall));
  }
  Json::Array mistakes;
  for (const Mistake& mistake : score.mistakes) {
    mistakes.push_back(json_of_mistake(mistake, score.task));
  }
  add(object, "mistakes", std::move(mistakes));
  return object;
}

std::vector<ScorePicture> pictures_of(const ClassifierScore& score) {
  std::vector<ScorePicture> pictures;
  if (score.confusion && score.confusion->classes <= kMostConfusionClasses) {
    const ConfusionPlot plot{.title = "confusion",
                             .subtitle = fmt::format("{}, accuracy {:.4f}", title_of(score),
                                                     score.classes->accuracy.value),
                             .labels = score.labels,
                             .counts = score.confusion->counts};
    pictures.push_back({"confusion.svg", draw_confusion(plot)});
  }
  if (score.reliability) pictures.push_back({"reliability.svg", draw_reliability(plot_of(score))});
  return pictures;
}

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// The labels of the model by name.
class KnownLabels {
 public:
  explicit KnownLabels(const std::vector<std::string>& labels) : labels_(labels) {
    for (std::size_t k = 0; k < labels.size(); ++k) {
      numbers_.emplace(labels[k], static_cast<std::int32_t>(k));
    }
  }

  // Throws kInputFormat, which begins with `place`.
  std::int32_t number_of(const std::string& label, const std::string& place) const {
    const auto found = numbers_.find(label);
    if (found != numbers_.end()) return found->second;
    std::string hint = did_you_mean(label, labels_);
    if (hint.empty()) hint = "the labels of the model are: " + list();
    throw Error(
        ErrorCode::kInputFormat,
        fmt::format("{}: expected a label that the model knows, got {}", place, excerpt(label)),
        hint);
  }

 private:
  std::string list() const {
    std::string names;
    for (const std::string& label : labels_) {
      if (names.size() > 200) return names + ", ...";
      names += (names.empty() ? "" : ", ") + excerpt(label);
    }
    return names;
  }

  const std::vector<std::string>& labels_;
  KeyedMap<std::string, std::int32_t> numbers_;
};

// The worst mistakes, of any number of texts.
class Worst {
 public:
  explicit Worst(index most) : most_(static_cast<std::size_t>(most)) {}

  bool wants(double loss) const {
    return held_.size() < most_ || (most_ > 0 && loss > held_.front().mistake.loss);
  }
  void add(Mistake mistake) {
    held_.push_back({std::move(mistake), number_++});
    std::push_heap(held_.begin(), held_.end(), is_worse);
    if (held_.size() <= most_) return;
    std::pop_heap(held_.begin(), held_.end(), is_worse);
    held_.pop_back();
  }
  std::vector<Mistake> take() {
    std::sort(held_.begin(), held_.end(), is_worse);
    std::vector<Mistake> mistakes;
    for (Held& held : held_) mistakes.push_back(std::move(held.mistake));
    return mistakes;
  }

 private:
  struct Held {
    Mistake mistake;
    index number;
  };
  // Among equal ones, the first of the file is the worse.
  static bool is_worse(const Held& a, const Held& b) {
    if (a.mistake.loss != b.mistake.loss) return a.mistake.loss > b.mistake.loss;
    return a.number < b.number;
  }

  std::size_t most_;
  std::vector<Held> held_;  // a heap whose front is the least bad
  index number_ = 0;
};

// Collects predictions and what is true.
class ClassifierTest {
 public:
  ClassifierTest(const Context& context, const LoadedClassifier& model,
                 const ClassifierTestOptions& options)
      : context_(context),
        model_(model),
        options_(options),
        task_(model.config().task),
        known_(model.labels),
        worst_(options.mistakes),
        predictor_(context, model) {}

  void read(const std::string& file, std::vector<std::string>& notes);
  void read_frames(const std::string& file);
  ClassifierScore score();
  LabelUses uses(const ClassifierScore& score) const;

 private:
  struct Row {
    LabelledText text;
    std::string place;
    std::vector<std::int32_t> labels;
  };

  TableOptions table() const;
  void check_row(Row& row) const;
  void predict(const std::string& file);
  void keep(const std::string& file, Rows<const float> found);
  double keep_truth(const Row& row, Vec<const float> predicted);
  bool is_wrong(const Row& row, Vec<const float> predicted) const;
  Mistake mistake_of(const std::string& file, Row& row, Vec<const float> predicted) const;
  Rows<const float> predictions() const;
  std::vector<float> decided() const;
  ClassifierAnswers answers() const {
    return {task_, model_.labels, model_.numbers, model_.thresholds()};
  }
  void score_classes(ClassifierScore& score) const;
  void score_labels(ClassifierScore& score) const;
  std::vector<PrecisionRecallPoint> curve_of(index label) const;
  void score_curves(ClassifierScore& score) const;
  void tell_thresholds(ClassifierScore& score) const;

  const Context& context_;
  const LoadedClassifier& model_;
  const ClassifierTestOptions& options_;
  const ClassifierTask task_;
  const KnownLabels known_;
  Worst worst_;
  TextPredictor predictor_;
  std::vector<Row> rows_;  // that wait to be predicted
  std::size_t bytes_ = 0;

  std::vector<float> predictions_;                         // [N, classes]
  std::vector<std::int32_t> truth_;                        // [N] of one class
  std::vector<std::uint8_t> truth_flags_;                  // [N, labels] of several
  std::vector<double> truth_numbers_, predicted_numbers_;  // [N] of regression
  std::vector<double> losses_;                             // [N]
};

TableOptions ClassifierTest::table() const {
  TableOptions table = options_.table;
  table.labels = task_ == ClassifierTask::kRegression   ? LabelUse::kNumbers
                 : task_ == ClassifierTask::kMultiLabel ? LabelUse::kAny
                                                        : LabelUse::kRequired;
  return table_of_texts(model_, std::move(table));
}

void ClassifierTest::read(const std::string& file, std::vector<std::string>& notes) {
  if (model_.reads_frames()) return read_frames(file);
  require_no_npz(file);
  const std::string name = name_of_input(file);
  LabelledReader reader(file, table());
  for (Row row; reader.next(row.text);) {
    row.place = reader.place(row.text);
    row.labels.clear();
    check_row(row);
    bytes_ += row.text.text.size();
    rows_.push_back(row);
    const bool many = rows_.size() >= TextPredictor::kTextsAtOnce;
    if (many || bytes_ >= TextPredictor::kBytesAtOnce) predict(name);
  }
  predict(name);
  for (std::string& note : reader.notes()) notes.push_back(std::move(note));
  if (reader.summary().rows > 0) return;
  throw Error(ErrorCode::kEmptyInput, fmt::format("{}: expected texts, got none", name),
              "name a file that holds labelled texts");
}

void ClassifierTest::read_frames(const std::string& name) {
  const FrameLabels labels = task_ == ClassifierTask::kRegression   ? FrameLabels::kNumber
                             : task_ == ClassifierTask::kMultiLabel ? FrameLabels::kSeveral
                                                                    : FrameLabels::kClass;
  FrameFile file = read_frame_file(name, labels);
  const FrameSet set = frames_of(model_, file);
  for (index s = 0; s < file.samples(); ++s) {
    const auto at = static_cast<std::size_t>(s);
    Row row{.text = {.text = fmt::format("{} time steps", file.lengths[at]),
                     .labels = std::move(file.labels[at]),
                     .numbers = {},
                     .line = s},
            .place = place_of_sample(name, s),
            .labels = {}};
    if (!file.numbers.empty()) row.text.numbers = {file.numbers[at]};
    check_row(row);
    rows_.push_back(std::move(row));
  }
  keep(name, predictor_.predict(set, 0, set.samples(), name));
}

void ClassifierTest::check_row(Row& row) const {
  const auto got = row.text.labels.size();
  if (task_ != ClassifierTask::kMultiLabel && got != 1) {
    throw Error(ErrorCode::kInputFormat,
                fmt::format("{}: expected one label, got {}", row.place, got),
                "the model knows one label each; write one, or test another model");
  }
  if (task_ == ClassifierTask::kRegression) return;
  for (const std::string& label : row.text.labels) {
    row.labels.push_back(known_.number_of(label, row.place));
  }
}

void ClassifierTest::predict(const std::string& file) {
  if (rows_.empty()) return;
  std::vector<NamedText> named;
  for (const Row& row : rows_) named.push_back({row.text.text, row.place});
  keep(file, predictor_.predict(named));
}

// Keeps what was predicted of the rows, and forgets these.
void ClassifierTest::keep(const std::string& file, Rows<const float> found) {
  require_memory("the predictions",
                 3.0 * sizeof(float) * static_cast<double>(found.rows * found.columns),
                 "test less at once, or use a machine with more memory");
  predictions_.insert(predictions_.end(), found.data, found.data + found.rows * found.columns);
  for (index n = 0; n < found.rows; ++n) {
    Row& row = rows_[static_cast<std::size_t>(n)];
    const Vec<const float> predicted{found[n], found.columns};
    const double loss = keep_truth(row, predicted);
    losses_.push_back(loss);
    if (!worst_.wants(loss) || !is_wrong(row, predicted)) continue;
    Mistake mistake = mistake_of(file, row, predicted);
    mistake.loss = loss;
    worst_.add(std::move(mistake));
  }
  rows_.clear();
  bytes_ = 0;
}

// Returns the loss of the row.
double ClassifierTest::keep_truth(const Row& row, Vec<const float> predicted) {
  if (task_ == ClassifierTask::kRegression) {
    const double truth = row.text.numbers[0], number = model_.numbers.from_model(predicted[0]);
    truth_numbers_.push_back(truth);
    predicted_numbers_.push_back(number);
    return (truth - number) * (truth - number);
  }
  if (task_ != ClassifierTask::kMultiLabel) {
    truth_.push_back(row.labels[0]);
    return loss_of_probability(predicted[row.labels[0]]);
  }
  const std::size_t begin = truth_flags_.size();
  truth_flags_.resize(begin + static_cast<std::size_t>(predicted.size));
  for (const std::int32_t k : row.labels) truth_flags_[begin + static_cast<std::size_t>(k)] = 1;
  double loss = 0;
  for (index k = 0; k < predicted.size; ++k) {
    const bool has = truth_flags_[begin + static_cast<std::size_t>(k)] != 0;
    loss += loss_of_probability(has ? predicted[k] : 1 - predicted[k]);
  }
  return loss;
}

bool ClassifierTest::is_wrong(const Row& row, Vec<const float> predicted) const {
  if (task_ == ClassifierTask::kRegression) {
    return row.text.numbers[0] != model_.numbers.from_model(predicted[0]);
  }
  std::vector<index> chosen =
      chosen_labels(answers(), predicted, {.threshold = options_.threshold});
  std::vector<index> truth(row.labels.begin(), row.labels.end());
  std::sort(chosen.begin(), chosen.end());
  std::sort(truth.begin(), truth.end());
  return chosen != truth;
}

Mistake ClassifierTest::mistake_of(const std::string& file, Row& row,
                                   Vec<const float> predicted) const {
  Mistake mistake{.file = file,
                  .line = row.text.line,
                  .text = row.text.text,
                  .truth = row.text.labels,
                  .predicted = {},
                  .truth_probability = kNone,
                  .probability = kNone};
  if (task_ == ClassifierTask::kRegression) {
    mistake.predicted.push_back(number_text(predicted[0], model_.numbers));
    return mistake;
  }
  const auto chosen = chosen_labels(answers(), predicted, {.threshold = options_.threshold});
  for (const index k : chosen) {
    mistake.predicted.push_back(model_.labels[static_cast<std::size_t>(k)]);
  }
  if (task_ == ClassifierTask::kMultiLabel) return mistake;
  mistake.truth_probability = double{predicted[row.labels[0]]};
  mistake.probability = double{predicted[chosen[0]]};
  return mistake;
}

Rows<const float> ClassifierTest::predictions() const {
  const index classes = model_.config().classes;
  return {predictions_.data(), static_cast<index>(predictions_.size()) / classes, classes};
}

// The predictions, as labels are chosen by them.
std::vector<float> ClassifierTest::decided() const {
  return decisive_rows(task_, predictions_, model_.thresholds());
}

void ClassifierTest::score_classes(ClassifierScore& score) const {
  const Rows<const float> predicted = predictions();
  const Vec<const std::int32_t> truth = truth_;
  const std::vector<float> values = decided();
  const std::vector<std::int32_t> chosen =
      most_likely_classes<float>({values.data(), predicted.rows, predicted.columns});
  score.confusion = confusion_matrix(truth, chosen, predicted.columns);
  score.classes = classification_intervals(context_, *score.confusion, options_.bootstrap);
  score.probabilities = probability_intervals(context_, predicted, truth, options_.bootstrap);
  score.reliability = reliability(predicted, truth);
  if (predicted.columns != 2) return;
  std::vector<float> second;
  std::vector<std::uint8_t> has;
  for (index n = 0; n < predicted.rows; ++n) {
    second.push_back(std::clamp(predicted[n][1], 0.0f, 1.0f));
    has.push_back(truth[n] == 1 ? 1 : 0);
  }
  score.second_class = binary_intervals<float>(context_, second, has, options_.bootstrap);
}

// The curve of a class or label, or with -1 of all decisions: the truth against the probability.
std::vector<PrecisionRecallPoint> ClassifierTest::curve_of(index label) const {
  const Rows<const float> predicted = predictions();
  std::vector<float> values;
  std::vector<std::uint8_t> has;
  for (index n = 0; n < predicted.rows; ++n) {
    for (index k = 0; k < predicted.columns; ++k) {
      if (label >= 0 && k != label) continue;
      values.push_back(predicted[n][k]);
      has.push_back(task_ == ClassifierTask::kMultiLabel
                        ? truth_flags_[static_cast<std::size_t>(n * predicted.columns + k)]
                        : static_cast<std::uint8_t>(truth_[static_cast<std::size_t>(n)] == k));
    }
  }
  return precision_recall_curve(values, has);
}

void ClassifierTest::score_curves(ClassifierScore& score) const {
  constexpr index kMostCurves = 6;
  const index labels = predictions().columns;
  const bool is_binary = task_ == ClassifierTask::kBinary;
  const auto add = [&](index label, std::optional<std::string> name) {
    std::vector<PrecisionRecallPoint> points = curve_of(label);
    if (!points.empty()) score.precision_recall.push_back({std::move(name), std::move(points)});
  };
  for (index k = is_binary ? 1 : 0; k < labels && labels <= kMostCurves; ++k) {
    add(k, model_.labels[static_cast<std::size_t>(k)]);
  }
  if (!is_binary) add(-1, std::nullopt);
}

void ClassifierTest::score_labels(ClassifierScore& score) const {
  const Rows<const float> predicted = predictions();
  const std::vector<float> values = decided();
  const std::vector<std::uint8_t> chosen =
      labels_above<float>({values.data(), predicted.rows, predicted.columns}, options_.threshold);
  score.multilabel =
      multilabel_intervals(context_, {truth_flags_.data(), predicted.rows, predicted.columns},
                           {chosen.data(), predicted.rows, predicted.columns}, options_.bootstrap);
  score.loss = bootstrap_mean(context_, losses_, options_.bootstrap);
  score.reliability = reliability<float>(predictions_, truth_flags_);
}

// Tells the thresholds of a linear model. F1 chooses one for each of several classes: these are no
// probabilities.
void ClassifierTest::tell_thresholds(ClassifierScore& score) const {
  const std::string& rule = model_.settings.linear.threshold;
  const bool is_binary = task_ == ClassifierTask::kBinary;
  if (task_ != ClassifierTask::kMultiLabel && !(is_binary && rule != "f1")) return;
  const std::span<const float> thresholds = model_.thresholds();
  for (index k = 0; k < static_cast<index>(thresholds.size()); ++k) {
    score.thresholds.push_back(threshold_of(task_, thresholds, k));
  }
  if (!thresholds.empty()) score.threshold_rule = rule;
}

ClassifierScore ClassifierTest::score() {
  ClassifierScore score{.task = task_,
                        .input = model_.settings.text.input,
                        .labels = model_.labels,
                        .examples = static_cast<index>(losses_.size()),
                        .truncated = predictor_.truncated(),
                        .confidence = options_.bootstrap.confidence,
                        .threshold = options_.threshold};
  if (task_ == ClassifierTask::kRegression) {
    score.numbers = regression_intervals<double>(context_, truth_numbers_, predicted_numbers_,
                                                 options_.bootstrap);
  } else if (task_ == ClassifierTask::kMultiLabel) {
    score_labels(score);
  } else {
    score_classes(score);
  }
  if (task_ != ClassifierTask::kRegression) score_curves(score);
  tell_thresholds(score);
  score.mistakes = worst_.take();
  return score;
}

LabelUses ClassifierTest::uses(const ClassifierScore& score) const {
  if (task_ == ClassifierTask::kRegression) return {};
  LabelUses uses{.truth = score.support(), .predicted = score.predicted(), .texts = score.examples};
  for (const ScoresOf<Interval>& label : score.by_label()) uses.right += label.f1.value > 0 ? 1 : 0;
  return uses;
}

}  // namespace

ClassifierScore evaluate_classifier(const Context& context, const LoadedClassifier& model,
                                    std::span<const std::string> files,
                                    const ClassifierTestOptions& options,
                                    std::vector<std::string>& notes) {
  check_options(options.table);
  check_options(PredictionChoice{.threshold = options.threshold});
  require_option(options.mistakes >= 0, "errors", options.mistakes, "at least 0");
  ClassifierTest test(context, model, options);
  for (const std::string& file : files) test.read(file, notes);
  ClassifierScore score = test.score();
  for (std::string& note : notices_of_uses(test.uses(score), score.labels, "test")) {
    notes.push_back(std::move(note));
  }
  return score;
}

}  // namespace fovea
