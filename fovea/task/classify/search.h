// SPDX-License-Identifier: Apache-2.0
// A search for the settings of a classifier within a budget: successive halving (Jamieson &
// Talwalkar 2016) over settings that are drawn by the seed, and over growing parts of the texts.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/base/context.h"
#include "fovea/task/classify/read_texts.h"
#include "fovea/task/classify/settings.h"
#include "fovea/task/classify/trials.h"
#include "fovea/train/trainer.h"

namespace fovea {

struct SearchResult {
  std::vector<SearchTrial> trials;
  std::size_t best = 0;         ///< of these; if there is none, the defaults are kept
  ClassifierSettings settings;  ///< with those of the best trial, and no search to do
  bool stopped = false;         ///< by request, before the end
};

/// Tries settings in rounds. The first round has the defaults among its settings, all others are
/// drawn without repetition. A round measures 3^(n-1) settings on the texts of the first of n
/// rungs, the best third on those of the second, which has three times as many, and so on; the last
/// rung has all texts. The best trial is that of the lowest loss on the highest rung. Options that
/// are not at their defaults stay as they are.
///
/// A loss is that of the validation files; without such, of linear models that of cross-validation.
/// Where bags and encoders are tried, too, it is that of a part of the texts that is held back.
class ClassifierSearch {
 public:
  /// Reads the texts. Throws as prepare_run().
  explicit ClassifierSearch(const ClassifierSettings& settings);

  /// Searches, and writes each trial into the folder as it ends. A search that is resumed goes on
  /// behind the trials that stand there, with the time that they left. Throws kConfig if these are
  /// of another search.
  SearchResult run(const Context& context, const std::filesystem::path& folder, bool resume,
                   TrainingObserver& observer) const;

 private:
  const ClassifierSettings settings_;
  LabelledSet set_;
};

}  // namespace fovea
