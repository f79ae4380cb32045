// SPDX-License-Identifier: Apache-2.0
#include "fovea/task/classify/score.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fovea/report/mistake_plots.h"
#include "fovea/task/score_json.h"

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

}  // namespace fovea
