// SPDX-License-Identifier: Apache-2.0
// The summary of the texts that is shown before training.
#pragma once

#include <string>
#include <vector>

#include "fovea/data/examples.h"
#include "fovea/data/label_set.h"
#include "fovea/task/classify/class_weights.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/settings.h"

namespace fovea {

/// The texts of a set, and how long they were before they were cut.
struct SetOverview {
  const Examples& examples;
  std::vector<index> lengths;  ///< [texts]
};

/// "NAME: 900 texts; tokens: median 12, 90 % at most 40, longest 97; cut to 64: 3".
/// With `words` of numbers samples and time steps.
std::string length_line(std::string_view name, SetOverview set, index max_length,
                        InputWords words = words_of(InputKind::kText));

/// The labels with their counts and shares, the most frequent first, at most ten.
std::string balance_line(const LabelSet& labels, const LabelCounts& found);

/// "numbers: 1 to 10, mean 5.5, standard deviation 3".
std::string number_line(const std::vector<double>& numbers, const NumberScale& scale);

/// The share of unknown words; empty if there are none.
std::string unknown_line(const Examples& training, const Examples* validation, token unknown);

}  // namespace fovea
