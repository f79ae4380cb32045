// SPDX-License-Identifier: Apache-2.0
// How far a run is, and its losses: as numbers, and as curves.
#pragma once

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/train/history.h"

namespace fovea {

struct RunSummary {
  index step = 0;
  index tokens = 0;
  double seconds = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double valid_loss = std::numeric_limits<double>::quiet_NaN();
  index valid_step = -1;
  double best_valid_loss = std::numeric_limits<double>::quiet_NaN();
  index best_step = -1;
  /// The metrics of the evaluations besides the loss, if any: no fields.
  std::vector<MetricValue> valid_metrics = {}, best_valid_metrics = {};
  std::vector<FoldedMetric> folds = {};  ///< of cross-validation, if it was asked for: no field

  template <class Visitor>
  void visit_fields(Visitor&& visit) {
    visit("step", step, "updates so far");
    visit("tokens", tokens, "targets trained so far");
    visit("seconds", seconds, "time so far");
    visit("train_loss", train_loss, "mean over the updates since the evaluation before");
    visit("valid_loss", valid_loss, "of the last evaluation");
    visit("valid_step", valid_step, "its update; -1: none yet");
    visit("best_valid_loss", best_valid_loss, "of the best weights, which are kept");
    visit("best_step", best_step, "its update; -1: none yet");
  }
};

/// The summary of a checkpoint, or of a run's folder: from metrics.jsonl or from the newest
/// checkpoint, whichever is at a later step. A model without either gives a summary of step 0.
/// Throws kModelDamaged for a checkpoint that cannot be read.
RunSummary run_summary(const std::filesystem::path& folder);
/// The summary of a run's folder whose records have been read.
RunSummary run_summary(const std::filesystem::path& folder, const HistoryRecords& records);

/// The file of the curves in the folder of a run.
inline constexpr std::string_view kCurvesName = "loss.svg";

/// The losses of a run over its updates and, if it was observed, what its attention looks like: a
/// page of plots as SVG.
std::string training_curves(const History& history, std::string_view loss_unit);

}  // namespace fovea
