// SPDX-License-Identifier: Apache-2.0
// What goes wrong with texts and predictions without an error: found, and said with what to do.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/data/examples.h"
#include "fovea/model/classifier_config.h"

namespace fovea {

/// How often each label was true, and was predicted. One label a text, unless several.
struct LabelUses {
  std::vector<index> truth = {}, predicted = {};  ///< [labels]
  index right = 0;                                ///< predictions that are true; 0: none is
  index texts = 0;
};

/// Those of the best validation of a run. A pointer of it is shared by what trains.
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
