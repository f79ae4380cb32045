// SPDX-License-Identifier: Apache-2.0
// Direct preference optimisation (Rafailov et al. 2023, "Direct Preference Optimization: Your
// Language Model is Secretly a Reward Model", equation 7): of two answers to a question the model
// makes the preferred one more probable, held to the model that the training began with, whose
// log-probabilities are computed once.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/base/view.h"
#include "fovea/train/model_folder.h"

namespace fovea {

inline constexpr std::string_view kNatsPerPair = "nats per pair";
inline constexpr std::string_view kReferenceName = "reference.safetensors";

/// Of each pair log p(preferred answer) - log p(the other) by the model that the training began
/// with.
struct PreferenceReference {
  std::vector<double> training, validation;
};

/// The differences in the losses [2 pairs] of answers, the preferred one of each pair first.
std::vector<double> log_ratios(Vec<const double> losses);

/// -log sigmoid(x), for x of any size.
double negative_log_sigmoid(double x);

/// The loss of a batch, and what each answer's own loss counts in its gradient.
struct PreferenceStep {
  double loss = 0;      ///< the sum of -log sigmoid(beta (log ratio - that of the reference))
  index preferred = 0;  ///< pairs whose log ratio is above that of the reference
  std::vector<double> factors = {};  ///< [2 pairs] of the gradient of the loss by these losses
};
/// `losses`: as log_ratios() has them; `reference`: [pairs].
PreferenceStep preference_step(Vec<const double> losses, Vec<const double> reference, double beta);

/// The file of a run folder.
void write_reference(const std::filesystem::path& folder, const PreferenceReference& reference);
/// Throws kModelMissing, and kModelDamaged unless it has so many pairs, of finite numbers.
PreferenceReference read_reference(const std::filesystem::path& folder, index training,
                                   index validation);
/// The check of the file, if there is one.
std::vector<FileCheck> verify_reference(const std::filesystem::path& folder);

}  // namespace fovea
