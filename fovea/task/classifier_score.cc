// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classifier_score.h"

#include <fmt/core.h>

#include <utility>

#include "fovea/report/confusion_plot.h"
#include "fovea/report/reliability_plot.h"

namespace fovea {

namespace {

static_assert(kMostClassesOfMatrix == kMostConfusionClasses);

Json json_of_interval(const Interval& interval) {
  Json::Object object;
  object.emplace_back("value", interval.value);
  object.emplace_back("low", interval.low);
  object.emplace_back("high", interval.high);
  return object;
}

Json json_of_labels(const ClassifierScore& score) {
  Json::Array list;
  for (std::size_t k = 0; k < score.labels.size(); ++k) {
    Json::Object label;
    label.emplace_back("label", score.labels[k]);
    label.emplace_back("support", score.support()[k]);
    label.emplace_back("predicted", score.predicted()[k]);
    const ScoresOf<Interval>& scores = score.by_label()[k];
    label.emplace_back("precision", json_of_interval(scores.precision));
    label.emplace_back("recall", json_of_interval(scores.recall));
    label.emplace_back("f1", json_of_interval(scores.f1));
    list.emplace_back(std::move(label));
  }
  return list;
}

Json json_of_matrix(const ConfusionMatrix& matrix) {
  Json::Array rows;
  for (index t = 0; t < matrix.classes; ++t) {
    Json::Array row;
    for (index p = 0; p < matrix.classes; ++p) row.emplace_back(matrix.at(t, p));
    rows.emplace_back(std::move(row));
  }
  return rows;
}

Json json_of_table(const ReliabilityTable& table) {
  Json::Array bins;
  for (const ReliabilityBin& bin : table.bins) {
    Json::Object object;
    object.emplace_back("low", bin.low);
    object.emplace_back("high", bin.high);
    object.emplace_back("count", bin.count);
    object.emplace_back("confidence", bin.confidence);
    object.emplace_back("accuracy", bin.accuracy);
    bins.emplace_back(std::move(object));
  }
  Json::Object object;
  object.emplace_back("ece", table.ece);
  object.emplace_back("mce", table.mce);
  object.emplace_back("bins", std::move(bins));
  return object;
}

Json::Array texts_of(const std::vector<std::string>& texts) {
  return Json::Array(texts.begin(), texts.end());
}

Json json_of_mistake(const Mistake& mistake, ClassifierTask task) {
  Json::Object object;
  object.emplace_back("file", mistake.file);
  object.emplace_back("line", mistake.line);
  object.emplace_back("text", mistake.text);
  object.emplace_back("loss", mistake.loss);
  if (task == ClassifierTask::kMultiLabel) {
    object.emplace_back("labels", texts_of(mistake.truth));
    object.emplace_back("predicted", texts_of(mistake.predicted));
    return object;
  }
  object.emplace_back("label", mistake.truth.at(0));
  object.emplace_back("predicted", mistake.predicted.at(0));
  if (task == ClassifierTask::kRegression) return object;
  object.emplace_back("label_probability", mistake.truth_probability);
  object.emplace_back("probability", mistake.probability);
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

Json json_of_score(const ClassifierScore& score) {
  Json::Object object;
  object.emplace_back("task", std::string(to_string(score.task)));
  object.emplace_back("examples", score.examples);
  object.emplace_back("truncated", score.truncated);
  object.emplace_back("confidence", score.confidence);
  if (score.multilabel) object.emplace_back("threshold", score.threshold);
  score.visit_numbers([&](std::string_view name, const Interval& interval) {
    object.emplace_back(std::string(name), json_of_interval(interval));
  });
  if (!score.numbers) object.emplace_back("labels", json_of_labels(score));
  if (score.confusion && score.confusion->classes <= kMostClassesOfMatrix) {
    object.emplace_back("confusion", json_of_matrix(*score.confusion));
  }
  if (score.reliability) object.emplace_back("reliability", json_of_table(*score.reliability));
  Json::Array mistakes;
  for (const Mistake& mistake : score.mistakes) {
    mistakes.push_back(json_of_mistake(mistake, score.task));
  }
  object.emplace_back("mistakes", std::move(mistakes));
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

}  // namespace fovea
