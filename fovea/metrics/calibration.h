// SPDX-License-Identifier: Apache-2.0
// Whether of the predictions with a confidence of .8 eight in ten are right.
#pragma once

#include <cstdint>
#include <vector>

#include "fovea/base/view.h"

namespace fovea {

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
}  // namespace fovea
