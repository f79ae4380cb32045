// SPDX-License-Identifier: Apache-2.0
// How good models of a part of a run's texts are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/report/run_report.h"
#include "fovea/train/trainer.h"

namespace fovea {

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

}  // namespace fovea
