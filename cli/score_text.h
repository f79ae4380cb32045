// SPDX-License-Identifier: Apache-2.0
// Scores as people and JSON read them: tables, numbers, what is confused, metrics of a run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/config/json.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/classification.h"
#include "fovea/train/run_summary.h"

namespace fovea::cli {

/// The text and spaces behind it, or before it, up to `columns` of the terminal.
std::string left(std::string_view text, index columns);
std::string right(std::string_view text, index columns);

/// "0.1235"; "undefined" for NaN.
std::string four_digits(double number);

/// A name from the data, safe for a terminal, of at most 24 columns.
std::string shown_name(std::string_view name);
std::vector<std::string> shown_names(const std::vector<std::string>& names);
/// The columns of the widest of them.
index widest_of(const std::vector<std::string>& names);

/// The line above numbers with intervals, and the line of one: "macro f1  0.8500  0.8321 to ...".
std::string numbers_head(double confidence);
std::string number_line(std::string_view name, const Interval& interval);

/// The headings of a confusion matrix, and of the pairs that are listed in its place.
struct ConfusionTitles {
  std::string_view matrix, pairs;
};
/// The matrix or, where it is wider than 100 columns, the twenty pairs of classes that are confused
/// most often, a line each: how often, and "A taken for B".
std::string confusion_text(const ConfusionMatrix& matrix, const std::vector<std::string>& names,
                           const ConfusionTitles& titles);

/// The "best" or the "last" weights: "best validation loss 0.2500", or, if more was measured, "best
/// weights: validation accuracy 0.9000, macro_f1 0.8990, loss 0.2500".
std::string validation_text(std::string_view which, double loss,
                            const std::vector<MetricValue>& metrics);

/// Adds the metrics as "valid_metrics" and "best_valid_metrics" if there are any.
void add_metrics(Json::Object& object, const RunSummary& run);

}  // namespace fovea::cli
