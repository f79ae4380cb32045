// SPDX-License-Identifier: Apache-2.0
// Reads what `fovea eval --json` printed.
#pragma once

#include <filesystem>

#include "fovea/report/run_report.h"
#include "fovea/task/model_kind.h"

namespace fovea {

/// What pages call a model of this kind.
Phrase name_of(ModelKind kind);

/// Of a model of this kind.
struct EvaluationFile {
  ModelKind kind = ModelKind::kLanguageModel;
  ReportEvaluation evaluation = {};
};

/// Numbers, confusion matrix and calibration of an evaluation, those that the file has. Throws what
/// read_file throws, and kInputFormat, which names the file, if it is no such object.
EvaluationFile read_evaluation(const std::filesystem::path& file);

}  // namespace fovea
