// SPDX-License-Identifier: Apache-2.0
// Scores as tables that people read: their columns, their numbers, and what is confused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/classification.h"

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

/// What stands above a confusion matrix, and above the pairs that are listed in its place.
struct ConfusionTitles {
  std::string_view matrix, pairs;
};
/// The matrix or, where it is wider than 100 columns, the twenty pairs of classes that are confused
/// most often, a line each: how often, and "A taken for B".
std::string confusion_text(const ConfusionMatrix& matrix, const std::vector<std::string>& names,
                           const ConfusionTitles& titles);

}  // namespace fovea::cli
