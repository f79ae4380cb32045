// SPDX-License-Identifier: Apache-2.0
// The tables of the page of training runs, as HTML.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/report/run_report.h"
#include "fovea/report/series.h"

namespace fovea {

/// A number with up to six digits; a dash for NaN.
std::string number_cell(double value);

/// Every point of the series, a row for each update (or group of updates) and a column for each
/// series, inside <details>. A group of several measurements has the mean, the lowest and the
/// highest.
std::string points_table(std::span<const Series> series, PageLanguage language);

/// One row a run: its state, losses and chosen metric.
std::string summary_table(std::span<const RunReport> runs, PageLanguage language);

/// Rows of facts, a column for each run. Rows in which runs differ are highlighted.
std::string facts_table(std::span<const RunReport> runs, std::vector<ReportFact> RunReport::*facts,
                        PageLanguage language);

/// The settings. Those that differ come first, highlighted; the others are inside <details> if
/// there are several runs.
std::string settings_table(std::span<const RunReport> runs, PageLanguage language);

/// The numbers of the evaluations, each with its interval, a column for each run.
std::string evaluations_table(std::span<const RunReport> runs, PageLanguage language);

/// Precision, recall and F1 of each class, label or type; "" if there are none.
std::string classes_table(const ReportEvaluation& evaluation, PageLanguage language);
/// The first mistakes, with their texts; "" if there are none.
std::string mistakes_table(const ReportEvaluation& evaluation, PageLanguage language);

/// The counts of a confusion matrix, and the bins of a calibration, inside <details>.
std::string confusion_table(const ConfusionPlot& plot, PageLanguage language);
std::string calibration_table(const ReliabilityPlot& plot, PageLanguage language);

}  // namespace fovea
