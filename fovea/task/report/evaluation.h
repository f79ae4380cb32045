// SPDX-License-Identifier: Apache-2.0
// Reads what `fovea eval --json` printed.
#pragma once

#include <filesystem>

#include "fovea/report/run_report.h"

namespace fovea {

/// Numbers, confusion matrix and calibration of an evaluation, those that the file has. Throws what
/// read_file throws, and kInputFormat, which names the file, if it is no such object.
ReportEvaluation read_evaluation(const std::filesystem::path& file);

}  // namespace fovea
