// SPDX-License-Identifier: Apache-2.0
// From probabilities to labels: rare ones are likely seldom enough that 1/2 never names them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/data/examples.h"
#include "fovea/model/classifier.h"

namespace fovea {

/// The goal for which a threshold is chosen.
enum class ThresholdGoal : std::uint8_t {
  kF1,
  kPrecision,  ///< the most texts of which at least this part is right
  kRecall,     ///< the fewest texts that hold at least this part of those with the label
  kGiven,      ///< it is this number
};
struct ThresholdRule {
  ThresholdGoal goal = ThresholdGoal::kF1;
  double value = 0;
};
struct ThresholdSearch {
  ThresholdRule rule = {};
  std::function<bool()> interrupted = {};  ///< asked before each label; true: no more of them
};
/// "f1", "precision=.95", "recall=.9" or ".3". Throws kOptionValue for any other text.
ThresholdRule parse_threshold(std::string_view text);

/// From which probability on a label is meant, [classes] in (0, 1]; found on predictions [texts,
/// classes] by models that have not seen the text.
///
/// Of several labels, text i has label k if p_ik >= threshold_k: half of the best F1 that the label
/// can have, which is where F1 is best of probabilities that are calibrated (Lipton et al. 2014,
/// "Optimal Thresholding of Classifiers to Maximize F1 Measure"). Of one class, it is that with the
/// largest p_ik / threshold_k, threshold_k = (its share of the texts)^a, the least a
/// from 0 to 0.9 with nearly the best macro F1; where no class has twice the texts of another, a is
/// 0: the likeliest one.
///
/// Other rules than F1 are of several labels, and of two classes, where they are those of the
/// second. Where no threshold reaches a precision, it is that of the highest. Empty if it was
/// interrupted.
std::vector<float> find_thresholds(const Context& context, ClassifierTask task,
                                   std::span<const float> predictions, const Examples& truth,
                                   index classes, const ThresholdSearch& search = {});

/// Whether a class has less than half of the texts of another one. `texts` is [classes]; those that
/// no text has do not count.
bool are_uneven(std::span<const double> texts);
/// The texts of each of so many classes or labels.
std::vector<double> count_texts(const Examples& truth, index classes);

/// A label for which no threshold reaches the precision of a rule, and what its own reaches.
struct MissedPrecision {
  index label = 0;
  double precision = 0;
};
std::vector<MissedPrecision> missed_precisions(ClassifierTask task,
                                               std::span<const float> predictions,
                                               const Examples& truth,
                                               std::span<const float> thresholds,
                                               const ThresholdRule& rule);

/// The threshold of label k, a probability; of two classes it is where the second begins.
double threshold_of(ClassifierTask task, std::span<const float> thresholds, index label);

/// Probabilities as if thresholds were equal: of several labels 1/2 where p is the threshold, of
/// one class p / threshold, so that they add up to 1. Their order, and what is above 1/2, is what
/// is meant. Without thresholds they are p.
std::vector<float> decisive(ClassifierTask task, std::span<const float> probabilities,
                            std::span<const float> thresholds);

/// decisive() of all rows [texts, thresholds].
std::vector<float> decisive_rows(ClassifierTask task, std::span<const float> probabilities,
                                 std::span<const float> thresholds);

}  // namespace fovea
