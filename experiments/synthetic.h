// SPDX-License-Identifier: Apache-2.0
// Tasks that are made by a program: a sequence of tokens ends with a question, and the model
// predicts the one token that answers it.
#pragma once

#include <string>
#include <vector>

#include "experiments/experiment.h"
#include "fovea/base/random.h"
#include "fovea/model/language_model.h"
#include "fovea/text/vocabulary.h"

namespace fovea {

struct SyntheticTask {
  std::string name;
  index vocabulary = 0;
  index length = 0;  ///< tokens of a sequence, the question included
  /// Fills the sequence with the next problem and returns its answer.
  std::function<token(Random& random, std::vector<token>& ids)> make;
};

struct SyntheticRun {
  LanguageModelConfig model;  ///< vocabulary and block follow from the task
  index batch = 32;           ///< sequences
  index updates = 500;
  double lr = 3e-3;
  index seed = 1;
};

/// Trains on endless problems, in `folder`, from where an earlier call was stopped; returns the
/// share of 1000 new problems that are answered rightly. Throws ReproduceStopped.
double accuracy_after_training(const Context& context, const SyntheticTask& task,
                               const SyntheticRun& run, const std::filesystem::path& folder,
                               const ReproduceObserver& observer);

}  // namespace fovea
