// SPDX-License-Identifier: Apache-2.0
// The numbers of training runs as tables, in HTML and as CSV, and the names of metrics on pages.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/report/curves.h"
#include "fovea/report/html.h"
#include "fovea/report/run_report.h"

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
std::string evaluations_table(
    std::span<const RunReport> runs, PageLanguage language,
    std::optional<ReportEvaluation> RunReport::*of = &RunReport::evaluation);

/// Precision, recall and F1 of each class, label or type; "" if there are none.
std::string classes_table(const ReportEvaluation& evaluation, PageLanguage language);
/// The first mistakes, with their texts; "" if there are none.
std::string mistakes_table(const ReportEvaluation& evaluation, PageLanguage language);

/// The counts of a confusion matrix, and the bins of a calibration, inside <details>.
std::string confusion_table(const ConfusionPlot& plot, PageLanguage language);
std::string calibration_table(const ReliabilityPlot& plot, PageLanguage language);

/// The points of its curves, inside <details>.
std::string precision_recall_table(const ReportEvaluation& evaluation, PageLanguage language);
/// The trials of a search, inside <details>.
std::string trials_table(const RunReport& run, PageLanguage language);
/// The numbers of each part of the texts.
std::string learning_table(const RunReport& run, PageLanguage language);
/// The name of a curve of precision over recall: a label, or "all, micro-averaged".
std::string curve_words(const NamedCurve& curve, PageLanguage language);

/// In English the name itself, as in metrics.jsonl and `fovea eval --json`: "macro_f1". In Chinese
/// the usual term; of a metric of one tag column ("accuracy_upos") with the column in brackets. A
/// name that is not known stays as it is.
std::string metric_words(std::string_view name, PageLanguage language);

/// How each such file begins.
inline constexpr std::string_view kRunCsvMark = "run,update,training_loss_batch,";

/// A row for each run and update at which anything was logged, a column for each series, below the
/// names of the columns. A cell is empty where its series has no point. Numbers have all their
/// digits; names with a comma or a quote are quoted (RFC 4180), lines end with LF.
std::string run_csv(std::span<const RunReport> runs);

}  // namespace fovea
