// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/curve.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fovea/report/curves.h"

namespace fovea {

namespace {

Plot losses_of(const History& history, std::string_view unit) {
  LossCurves curves;
  curves.unit = unit;
  for (const UpdateRecord& record : history.updates()) {
    const double x = static_cast<double>(record.step);
    curves.last_batch.push_back({x, record.loss});
    curves.running_mean.push_back({x, record.running_loss});
  }
  for (const EvaluationRecord& record : history.evaluations()) {
    const double x = static_cast<double>(record.step);
    curves.interval_mean.push_back({x, record.train_loss});
    curves.validation.push_back({x, record.valid_loss});
    if (record.is_best) curves.best = x;
  }
  for (const TrainingRecord& record : history.training()) {
    curves.training.push_back({static_cast<double>(record.step), record.loss});
  }
  return loss_plot(curves);
}

// Every metric over all evaluations.
Plot metrics_of(const std::vector<MetricsRecord>& records) {
  MetricCurves curves;
  for (const MetricsRecord& record : records) {
    for (const MetricValue& one : record.values) {
      const auto is_same = [&](const NamedCurve& curve) { return curve.name == one.name; };
      auto curve = std::find_if(curves.metrics.begin(), curves.metrics.end(), is_same);
      if (curve == curves.metrics.end()) {
        curve = curves.metrics.insert(curve, {.name = one.name, .points = {}});
      }
      curve->points.push_back({static_cast<double>(record.step), one.value});
    }
    if (record.is_best) curves.best = static_cast<double>(record.step);
  }
  return metrics_plot(curves);
}

bool have_one_shape(const HeadNumbers& a, const HeadNumbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.size() == y.size(); });
}

// Records of another shape than the last one are not of this model, and are left out.
Plot heads_of(const History& history, HeadNumbers AttentionRecord::*numbers, HeadCurves curves) {
  const std::vector<AttentionRecord>& records = history.attention();
  const HeadNumbers& last = records.back().*numbers;
  curves.heads.resize(last.size());
  for (std::size_t l = 0; l < last.size(); ++l) {
    curves.heads[l].resize(last[l].size());
    for (std::vector<PlotPoint>& points : curves.heads[l]) points.reserve(records.size());
  }
  for (const AttentionRecord& record : records) {
    const HeadNumbers& layers = record.*numbers;
    if (!have_one_shape(layers, last)) continue;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      for (std::size_t h = 0; h < layers[l].size(); ++h) {
        curves.heads[l][h].push_back({static_cast<double>(record.step), layers[l][h]});
      }
    }
  }
  return heads_plot(std::move(curves));
}

}  // namespace

std::string training_curves(const History& history, std::string_view loss_unit) {
  std::vector<Plot> plots = {losses_of(history, loss_unit)};
  if (!history.metrics().empty()) plots.push_back(metrics_of(history.metrics()));
  const auto add = [&](HeadNumbers AttentionRecord::*numbers, const HeadCurves& names) {
    const auto& records = history.attention();
    if (!records.empty() && !(records.back().*numbers).empty()) {
      plots.push_back(heads_of(history, numbers, names));
    }
  };
  add(&AttentionRecord::entropy, {"entropy of the attention weights", "nats"});
  add(&AttentionRecord::max_logit, {"largest score", "score, after bias and mask"});
  add(&AttentionRecord::distance, {"mean distance from a query to its keys", "tokens"});
  return draw_page(plots);
}

}  // namespace fovea
