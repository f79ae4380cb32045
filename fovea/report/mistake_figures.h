// SPDX-License-Identifier: Apache-2.0
// The figures of an evaluation's mistakes on the page of training runs, as HTML.
#pragma once

#include <string>

#include "fovea/report/run_report.h"

namespace fovea {

/// Confusion and calibration of a run's evaluation.
std::string mistake_figures(const RunReport& run, PageLanguage language);

}  // namespace fovea
