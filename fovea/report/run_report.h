// SPDX-License-Identifier: Apache-2.0
// A page about training runs: what they were, their curves and their mistakes. It needs no script.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/report/curves.h"
#include "fovea/report/html.h"
#include "fovea/report/mistake_plots.h"

namespace fovea {

/// A number of an evaluation, and its interval where there is one.
struct ReportNumber {
  std::string name;
  double value = 0;
  double low = std::numeric_limits<double>::quiet_NaN(), high = low;
};

/// A class, a label or a type of spans: how often it is true and predicted, and its scores.
struct ReportClass {
  std::string name;
  index support = 0, predicted = 0;
  double precision = 0, recall = 0;
  ReportNumber f1 = {};
};

/// An example that the model got wrong. Members that its kind does not have are empty or NaN.
struct ReportMistake {
  std::string place;  ///< file:line
  std::string text = {};
  std::string truth = {}, predicted = {};
  double truth_probability = std::numeric_limits<double>::quiet_NaN();
  double probability = std::numeric_limits<double>::quiet_NaN();  ///< of what was predicted
  double loss = std::numeric_limits<double>::quiet_NaN();
};

/// The result of `fovea eval`.
struct ReportEvaluation {
  std::string source = {};  ///< the file that says it
  double confidence = 0.95;
  std::vector<ReportNumber> numbers = {};
  Phrase class_name = {};  ///< "class", "label" or "type"
  std::vector<ReportClass> classes = {};
  std::vector<ReportMistake> mistakes = {};  ///< the worst first
  std::optional<ConfusionPlot> confusion = {};
  std::optional<ReliabilityPlot> reliability = {};
  /// Precision (y) over recall (x) of classes or labels; without a name: of all decisions.
  std::vector<NamedCurve> precision_recall = {};
  bool of_decisions = false;  ///< the calibration: of each label, not of the likeliest class
};

/// A setting that a search has tried.
struct ReportTrial {
  index trial = 0, rows = 0;
  bool on_highest = false;  ///< of as many texts as any trial
  double loss = 0, seconds = 0;
  std::string options = {};
};

/// Scores of models of a part of the texts.
struct ReportLearning {
  index rows = 0;
  std::vector<ReportNumber> numbers = {};
};

/// A setting as the run began and, if it was resumed with another value, now.
struct ReportSetting {
  std::string name, began, now;
};

/// Something that is known of a run. Facts of the same name stand in one row of a table.
struct ReportFact {
  Phrase name;
  std::string value;
};
/// The name of the fact by which runs on different data are known.
inline constexpr std::string_view kDataFingerprint = "fingerprint of the data";

/// Names and values may hold anything: the page shows them as text.
struct RunReport {
  std::string name;  ///< no two runs of a page have the same
  Phrase kind = {};  ///< "text classifier"
  Phrase unit = {};  ///< of losses: runs of one unit share a plot
  bool is_running = false;
  index updates = 0, targets = 0;
  double seconds = 0;

  LossCurves losses = {};
  std::vector<NamedCurve> metrics = {};           ///< of the validation set
  std::vector<NamedCurve> training_metrics = {};  ///< of the whole training set
  /// The metrics of the training batches: over the interval so far, and of each whole interval.
  std::vector<NamedCurve> running_metrics = {}, interval_metrics = {};
  std::vector<PlotPoint> lr = {}, gradient_norm = {}, speed = {};
  std::vector<double> resumed = {};  ///< after which updates
  /// [layers][heads]; empty: not observed
  std::vector<std::vector<std::vector<PlotPoint>>> entropy = {}, max_logit = {}, distance = {};

  std::vector<ReportFact> environment = {}, data = {};
  std::vector<ReportSetting> settings = {};
  std::vector<Phrase> notes = {};  ///< remarks, such as on a damaged line
  std::optional<ReportEvaluation> evaluation = {};
  std::optional<ReportEvaluation> cross_validation = {};  ///< its numbers alone
  std::vector<ReportTrial> trials = {};
  std::vector<ReportLearning> learning = {};  ///< by ascending rows
};

struct RunPageOptions {
  PageLanguage language = PageLanguage::kEnglish;
  std::string made = {};     ///< when: UTC
  std::string version = {};  ///< of fovea
};

inline constexpr std::size_t kMostPageBytes = 8'000'000;
/// A page of more runs than this leaves out confusion, calibration and heads, and says so.
inline constexpr std::size_t kMostRunsInDetail = 8;

/// The page, an HTML file: at most kMostPageBytes, unless settings and names alone take more. Every
/// point of a curve stands in a table, too. Long curves are thinned (see Series), which the page
/// says. Throws Error(kShape) without any run.
std::string draw_run_page(std::span<const RunReport> runs, const RunPageOptions& options);

}  // namespace fovea
