// SPDX-License-Identifier: Apache-2.0
// --class-weights: how much each class counts in the loss.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "fovea/data/label_set.h"

namespace fovea {

/// How many texts of how many have each label.
struct LabelCounts {
  std::vector<index> counts;  ///< [labels]
  index texts = 0;
  bool multi_label = false;
};

/// none: no weights. balanced: N / (K n_k) of class k of K with n_k of N texts; with several labels
/// (N - n_k) / n_k, which counts texts with and without the label alike. LABEL=NUMBER,...: as said,
/// and 1 of the others; a label with a comma stands in double quotes, and quotes in it twice.
/// Throws kOptionValue, which names what is wrong.
std::vector<double> class_weights(const std::string& option, const LabelSet& labels,
                                  const LabelCounts& found);

}  // namespace fovea
