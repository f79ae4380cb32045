// SPDX-License-Identifier: Apache-2.0
// What goes wrong with texts and predictions without an error: found, and said with what to do.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/examples.h"
#include "fovea/data/label_set.h"
#include "fovea/model/classifier.h"
#include "fovea/task/classify/classifier.h"
#include "fovea/task/classify/read_texts.h"
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

/// How often each label was true, and was predicted. One label a text, unless several.
struct LabelUses {
  std::vector<index> truth = {}, predicted = {};  ///< [labels]
  index right = 0;                                ///< predictions that are true; 0: none is
  index texts = 0;
};

/// The uses of labels in the best validation of a run. What trains shares a pointer to it.
struct BestUses {
  LabelUses uses = {};
  std::vector<std::string> more = {};  ///< further lines on the validation
  double goodness = -std::numeric_limits<double>::infinity();

  /// Keeps those of a validation that is as good as the best so far.
  void take(const std::vector<float>& predictions, const Examples& truth,
            const ClassifierConfig& config, double goodness);
};

/// A line for each: one class alone is predicted, no label is, nothing predicted is right, labels
/// that several texts have are never predicted. `set`: "validation". None where too few texts say
/// anything.
std::vector<std::string> notices_of_uses(const LabelUses& uses,
                                         const std::vector<std::string>& labels,
                                         std::string_view set);

struct LabelledSet;
/// Looks for texts with the same words: case and punctuation, of any script, do not count. Appends
/// to the notes or the overview of the set.
void note_repeated_texts(LabelledSet& set);

}  // namespace fovea
