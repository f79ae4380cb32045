// SPDX-License-Identifier: Apache-2.0
// The training of a linear model of texts: a problem that is solved in one piece.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "fovea/base/context.h"
#include "fovea/task/classify/run.h"

namespace fovea {

/// Chooses and counts the n-grams of the texts to train on, says them in the settings, and adds a
/// line on them to the overview.
void learn_ngrams(ClassifierRun& run);

/// What the fit takes; see RunCost and the like of other models.
RunCost linear_cost(const ClassifierRun& run);
double linear_memory(const Context& context, const ClassifierRun& run);
RunTime linear_time(const Context& context, const ClassifierRun& run);

/// A model that was fitted, and how good it is on texts that it had not seen, those of --valid or
/// else of cross-validation; nothing if there were too few.
struct MeasuredFit {
  LinearFit fit;
  std::optional<Validation> found = {};
  /// The loss and the metrics of cross-validation over its folds, with --folds. (C, thresholds and
  /// calibration are those of all folds.)
  std::vector<FoldedMetric> folds = {};
};

/// Fits the model of a run. Nothing if it was interrupted.
std::optional<MeasuredFit> fit_measured(const Context& context, const ClassifierRun& run,
                                        TrainingObserver& observer);

/// Fits the model, measures it and writes it. metrics.jsonl has an evaluation for each setting that
/// cross-validation tried, numbered from 1, and the metrics of the one that was chosen: of texts
/// that the model had not seen, those of --valid or else of cross-validation. A run that is
/// interrupted leaves its config.json; resumed, it begins anew, and ends with the same bits.
TrainResult train_linear(const Context& context, const ClassifierRun& run,
                         const std::filesystem::path& folder, const StartAt& start,
                         TrainingObserver& observer);

/// Loads the model of a folder. Throws kModelDamaged, kModelMissing.
std::unique_ptr<LinearModel> load_linear(const std::filesystem::path& folder,
                                         const ClassifierSettings& settings);

}  // namespace fovea
