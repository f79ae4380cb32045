// SPDX-License-Identifier: Apache-2.0
// The training of a linear model of texts: a problem that is solved in one piece.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/base/types.h"
#include "fovea/report/run_report.h"
#include "fovea/task/classify/run.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// Chooses and counts the n-grams of the texts to train on, says them in the settings, and adds a
/// line on them to the overview.
void learn_ngrams(ClassifierRun& run);

/// The cost of the fit; see RunCost and the like of other models.
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
  /// [texts, classes] the predictions behind `found`, as labels are chosen by them.
  std::vector<float> decided = {};
  std::vector<float> fitted = {};  ///< [texts, classes] predictions for the texts to train on
};

/// What was chosen for a linear model, by the metadata of its weights: {{"weighting", "ratio"},
/// {"c", "64"}, {"without_words", "true"}}; empty of other models.
std::vector<std::pair<std::string, std::string>> choice_in(const SafetensorsMetadata& metadata);
/// "weighting ratio, C 64, without the n-grams of words"
std::string choice_text(const std::vector<std::pair<std::string, std::string>>& choice);

/// Fits the model of a run; `wants_fitted`: with what it says of the texts to train on. Nothing if
/// it was interrupted.
std::optional<MeasuredFit> fit_measured(const Context& context, const ClassifierRun& run,
                                        TrainingObserver& observer, bool wants_fitted = false);

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

/// Trains the model of a folder anew on 1/16, 1/8, 1/4, 1/2 and all of its texts, as far as a part
/// has enough, and scores each by the folds of its cross-validation: the metrics and the loss, with
/// 95 % intervals. The folder stays as it is. Nothing if the observer asked to stop. A note says
/// that the texts or the labels are no longer those that the model was trained on.
///
/// Throws kModelWrongKind for another model than a linear one of texts, kMissingInput if its texts
/// are gone.
std::vector<ReportLearning> learning_curve(const Context& context,
                                           const std::filesystem::path& folder,
                                           TrainingObserver& observer,
                                           std::vector<std::string>& notes);

/// The names of what export_compact() writes.
inline constexpr std::array<std::string_view, 3> kCompactFiles = {"config.json", "MANIFEST.json",
                                                                  "model.safetensors"};

struct CompactExport {
  index ngrams = 0, ngrams_before = 0;  ///< of the model
  index bytes = 0;                      ///< of model.safetensors
};

/// Writes the linear classifier of folder `model` into another, as a model folder whose
/// model.safetensors has at most so many bytes. Throws kModelWrongKind, before anything is written,
/// for a model of any other kind, and what load_classifier() and pruned() throw.
CompactExport export_compact(const std::filesystem::path& model,
                             const std::filesystem::path& folder, index bytes);

}  // namespace fovea
