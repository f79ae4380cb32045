// SPDX-License-Identifier: Apache-2.0
// How good predicted probabilities are: of one of K classes, or of a label.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/base/view.h"
#include "fovea/metrics/bootstrap.h"
#include "fovea/metrics/scores.h"

namespace fovea {

/// The class of the largest score of each row of scores [N, K]; of equal ones, the first. Throws
/// Error(kOptionValue) for NaN, Error(kShape) without classes. T: float, double.
template <class T>
std::vector<std::int32_t> most_likely_classes(Rows<const T> scores);

/// Which labels of probabilities [N, L] are predicted: 1 where p >= threshold, else 0; row after
/// row. Throws Error(kOptionValue) for NaN. T: float, double.
template <class T>
std::vector<std::uint8_t> labels_above(Rows<const T> probabilities, double threshold = 0.5);

/// The predictions whose confidence is in (low, high]; the first bin has 0, too.
struct ReliabilityBin {
  double low = 0, high = 0;
  index count = 0;
  double confidence = 0;  ///< mean; 0 in an empty bin
  double accuracy = 0;    ///< share of those that are right; 0 in an empty bin
};

struct ReliabilityTable {
  index examples = 0;
  std::vector<ReliabilityBin> bins = {};  ///< of equal width, ascending
  double ece = 0;  ///< expected calibration error: sum_m count_m / N |accuracy_m - confidence_m|
  double mce = 0;  ///< maximum calibration error: the largest of these differences
};

inline constexpr index kReliabilityBins = 15;  ///< Guo et al. 2017, table 1

/// The confidence of a prediction is the largest of its K probabilities, and it is right if that
/// belongs to the class truth[n] (Guo, Pleiss, Sun, Weinberger 2017, "On calibration of modern
/// neural networks", section 2). probabilities [N, K]; truth [N] in [0, K).
///
/// Throws Error(kShape) if the lengths differ, there are no examples, a label is outside of the
/// range or bins < 1; Error(kOptionValue) unless each row holds probabilities that add up to 1. T:
/// float, double.
template <class T>
ReliabilityTable reliability(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                             index bins = kReliabilityBins);

/// For one label: the confidence is its probability, and `accuracy` the share of the examples that
/// have the label (scikit-learn's calibration_curve). Also for any confidences with what is right.
/// probabilities, truth [N]: truth is 1 or 0.
template <class T>
ReliabilityTable reliability(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                             index bins = kReliabilityBins);

namespace detail {

/// Confidences, with their bins found once: for resamples.
class Reliability {
 public:
  /// confidences in [0, 1], and for each whether it is right. Throws Error(kShape) if bins < 1.
  Reliability(std::vector<double> confidences, std::vector<std::uint8_t> right, index bins);

  /// The table of the examples where example n counts times[n] times.
  ReliabilityTable table(Vec<const index> times) const;

 private:
  std::vector<double> confidences_;
  std::vector<std::uint8_t> right_;
  std::vector<std::size_t> bin_of_;
  index bins_;
};

/// The reliability of distributions [N, K] that have been checked.
Reliability top_label_reliability(Rows<const double> distributions, Vec<const std::int32_t> truth,
                                  index bins);

}  // namespace detail

/// Number is double, or Interval.
template <class Number>
struct ProbabilityReportOf {
  index examples = 0;
  /// - log p of the true class, mean, in nats. p is first moved into [e, 1 - e], with e the epsilon
  /// of T, as scikit-learn does: one certain mistake costs at most 15.9 nats in float, 36 in
  /// double.
  Number log_loss = {};
  /// sum_k (p_k - [k is the true class])^2, mean: in [0, 2] (Brier 1950, eq. 2). For two classes
  /// half of it, so that it is the score of one of them (scikit-learn's scale_by_half="auto").
  Number brier = {};
  Number ece = {};  ///< of reliability(): a resample's is larger on average than that of the whole

  /// Calls f(NumberName, number) for "log_loss", "brier", "ece".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"log_loss"}, self.log_loss);
    f(NumberName{"brier"}, self.brier);
    f(NumberName{"ece"}, self.ece);
  }
  template <class Other>
  void take_sizes(const ProbabilityReportOf<Other>& other) {
    examples = other.examples;
  }
};
using ProbabilityReport = ProbabilityReportOf<double>;
using ProbabilityIntervals = ProbabilityReportOf<Interval>;

/// probabilities [N, K], truth [N] in [0, K). Throws as reliability() does. T: float, double.
template <class T>
ProbabilityReport probability_report(Rows<const T> probabilities, Vec<const std::int32_t> truth,
                                     index bins = kReliabilityBins);

/// Bootstrap intervals of all numbers of the report.
template <class T>
ProbabilityIntervals probability_intervals(const Context& ctx, Rows<const T> probabilities,
                                           Vec<const std::int32_t> truth,
                                           const BootstrapOptions& options = {},
                                           index bins = kReliabilityBins);

/// The share of pairs of a positive and a negative example in which the positive one has the higher
/// score; a tie counts half (the area under the ROC curve: Hanley, McNeil 1982). NaN unless there
/// are examples of both kinds.
///
/// scores [N] finite, truth [N]: 1 for positive examples, else 0. Throws Error(kShape) if the
/// lengths differ or there are no examples, Error(kOptionValue) for other values. T: float, double.
template <class T>
double roc_auc(Vec<const T> scores, Vec<const std::uint8_t> truth);

/// sum_i (R_i - R_(i-1)) P_i over the distinct scores, descending, where P_i and R_i are precision
/// and recall if all with that score or more are predicted (scikit-learn's
/// average_precision_score). NaN without positive examples (scikit-learn: 0, and a warning).
/// Arguments as above.
template <class T>
double average_precision(Vec<const T> scores, Vec<const std::uint8_t> truth);

/// Number is double, or Interval.
template <class Number>
struct BinaryReportOf {
  index examples = 0;
  index positives = 0;
  Number roc_auc = {};
  Number average_precision = {};
  Number log_loss = {};  ///< as in ProbabilityReport
  Number brier = {};     ///< mean (p - truth)^2
  Number ece = {};       ///< of reliability() for one label

  /// Calls f(NumberName, number) for "roc_auc", "average_precision", "log_loss", "brier", "ece".
  template <class Self, class F>
  static void visit_numbers(Self&& self, F&& f) {
    f(NumberName{"roc_auc"}, self.roc_auc);
    f(NumberName{"average_precision"}, self.average_precision);
    f(NumberName{"log_loss"}, self.log_loss);
    f(NumberName{"brier"}, self.brier);
    f(NumberName{"ece"}, self.ece);
  }
  template <class Other>
  void take_sizes(const BinaryReportOf<Other>& other) {
    examples = other.examples;
    positives = other.positives;
  }
};
using BinaryReport = BinaryReportOf<double>;
using BinaryIntervals = BinaryReportOf<Interval>;

/// The report on probabilities of one label: arguments as above, in [0, 1]; bins >= 1.
template <class T>
BinaryReport binary_report(Vec<const T> probabilities, Vec<const std::uint8_t> truth,
                           index bins = kReliabilityBins);

/// Bootstrap intervals of all numbers of the report.
template <class T>
BinaryIntervals binary_intervals(const Context& ctx, Vec<const T> probabilities,
                                 Vec<const std::uint8_t> truth,
                                 const BootstrapOptions& options = {},
                                 index bins = kReliabilityBins);

// How precise predictions are at each recall.

/// Precision and recall where examples count as positive from a probability of `threshold` on.
struct PrecisionRecallPoint {
  double recall, precision, threshold;
};

/// Points by ascending recall, one for each probability that occurs; of more than `most` so many,
/// at about even distances of recall, the last one among them. None without a positive example.
/// truth [N]: 1 for those that have the label.
std::vector<PrecisionRecallPoint> precision_recall_curve(std::span<const float> probabilities,
                                                         std::span<const std::uint8_t> truth,
                                                         index most = 100);

}  // namespace fovea
