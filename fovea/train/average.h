// SPDX-License-Identifier: Apache-2.0
// The mean of the weights of several checkpoints of a run (Vaswani et al. 2017, section 6.1).
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/grad/parameter.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/model_folder.h"

namespace fovea {

/// The last `count` checkpoints of the run in `folder`, up to `step`, ascending; fewer if there are
/// no more.
std::vector<index> checkpoints_to_average(const std::filesystem::path& folder, index step,
                                          index count);

/// The mean of their weights, summed in double in this order: a tensor for each parameter. Throws
/// kModelDamaged, kNoCheckpoint.
std::vector<NamedTensor> mean_of_checkpoints(const std::filesystem::path& folder,
                                             std::span<const index> steps,
                                             std::span<Parameter* const> parameters);

/// The weights of the best evaluations of a run, kept in its folder `best` (step-000500.safetensors
/// and so on), whatever becomes of its checkpoints. A run that is resumed keeps what one that was
/// never interrupted keeps: an evaluation is given before the checkpoint of its update is written.
class BestWeights {
 public:
  BestWeights(std::filesystem::path run, index count) : run_(std::move(run)), count_(count) {}

  /// The run goes on from this update: removes what was kept after it, what is damaged, and the
  /// worst beyond `count`. `held`: as many were kept at that update. Returns a warning for each
  /// that is damaged, and one if any is missing. Later calls do nothing.
  std::vector<std::string> go_on_from(index step, index held = 0);
  /// The parameters are kept if this is one of the best; of equal ones the earlier. Throws kWrite,
  /// kDiskFull.
  void evaluated(index step, double goodness, std::span<Parameter* const> parameters);

  /// The updates of those that are kept, ascending.
  std::vector<index> steps() const;
  /// As mean_of_checkpoints(). Throws kModelDamaged.
  std::vector<NamedTensor> mean(std::span<Parameter* const> parameters) const;

 private:
  std::map<index, double>::const_iterator worst() const;
  void forget_worst();

  std::filesystem::path run_;
  index count_;
  bool began_ = false;
  std::map<index, double> kept_;  // the goodness of each step
};

/// The folder of these in a run.
inline constexpr std::string_view kBestFolderName = "best";
/// Reads and checks each of its files.
std::vector<FileCheck> verify_best_weights(const std::filesystem::path& run);
/// Removes that folder with the weights in it, and nothing else.
void remove_best_weights(const std::filesystem::path& run);

}  // namespace fovea
