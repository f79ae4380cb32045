// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/run_summary.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "fovea/base/error.h"
#include "fovea/report/curves.h"
#include "fovea/train/history.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/trainer.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

// Reads only the state of the checkpoint, not weights and moments, which may be large.
RunSummary summary_of_checkpoint(const fs::path& folder) {
  const std::string name = "state.json";
  Checkpoint checkpoint{.step = 0, .path = folder, .files = {}};
  checkpoint.files.push_back({name, read_model_file(folder, name)});
  const RunState state = state_of(checkpoint);
  RunSummary summary{.step = state.step, .tokens = state.tokens, .seconds = state.seconds};
  if (state.tokens > 0) summary.train_loss = state.recent_train_loss();
  if (state.evaluated_step >= 0) summary.valid_loss = state.valid_loss;
  if (state.best_step >= 0) summary.best_valid_loss = state.best_valid_loss;
  summary.valid_step = state.evaluated_step;
  summary.best_step = state.best_step;
  return summary;
}

// The summary of the newest checkpoint that can be read.
RunSummary summary_of_checkpoints(const fs::path& folder) {
  std::vector<index> steps = checkpoint_steps(folder);
  for (; !steps.empty(); steps.pop_back()) {
    try {
      return summary_of_checkpoint(checkpoint_path(folder, steps.back()));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;  // the checkpoint may be intact
    }
  }
  return {};
}

void add_records(const HistoryRecords& records, RunSummary& summary) {
  if (!records.updates.empty() && records.updates.back().step > summary.step) {
    const UpdateRecord& last = records.updates.back();
    summary.step = last.step;
    summary.tokens = last.tokens;
    summary.seconds = last.seconds;
    summary.train_loss = last.running_loss;
  }
  for (const EvaluationRecord& record : records.evaluations) {
    if (record.step > summary.valid_step) {
      summary.valid_step = record.step;
      summary.valid_loss = record.valid_loss;
    }
    if (record.is_best) {
      summary.best_step = record.step;
      summary.best_valid_loss = record.valid_loss;
    }
  }
  for (const MetricsRecord& record : records.metrics) {
    if (record.step == summary.valid_step) summary.valid_metrics = record.values;
    if (record.step == summary.best_step) summary.best_valid_metrics = record.values;
  }
  if (!records.folds.empty()) summary.folds = records.folds.back().values;
}

}  // namespace

RunSummary run_summary(const fs::path& folder) {
  if (read_manifest(folder).kind == "checkpoint") return summary_of_checkpoint(folder);
  return run_summary(folder, read_history(folder / "metrics.jsonl"));
}

RunSummary run_summary(const fs::path& folder, const HistoryRecords& records) {
  RunSummary summary = summary_of_checkpoints(checkpoints_of(folder));
  add_records(records, summary);
  return summary;
}

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
    if (!std::isnan(record.train_loss)) curves.interval_mean.push_back({x, record.train_loss});
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
