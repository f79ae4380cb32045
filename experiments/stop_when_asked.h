// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

#include "experiments/row.h"
#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/task/training_task.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_lock.h"
#include "fovea/train/trainer.h"

namespace fovea {

/// Whether a run began in the folder: its manifest is the last of the files that a run begins with.
inline bool run_began(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / kManifestName);
}

/// Ends a training, with a checkpoint, as soon as stop() is true.
class StopWhenAsked final : public TrainingObserver {
 public:
  explicit StopWhenAsked(const std::function<bool()>& stop) : stop_(stop) {}
  Request request() override { return stop_ && stop_() ? Request::kStop : Request::kNone; }

 private:
  const std::function<bool()>& stop_;
};

/// Trains in `folder`, or goes on where an earlier call was stopped: train(StartAt,
/// TrainingObserver&) returns a TrainResult. Throws ReproduceStopped, and kConfig if a run there
/// went on beyond its `updates`.
template <class Train>
void train_in(const std::filesystem::path& folder, const ReproduceObserver& observer, index updates,
              Train&& train) {
  create_folders(folder);
  const RunLock lock(folder);
  StopWhenAsked watching(observer.stop);
  StartAt start;
  start.resume = run_began(folder);
  const TrainResult result = train(start, watching);
  if (result.stopped) throw ReproduceStopped();
  if (result.state.step == updates) return;
  throw Error(ErrorCode::kConfig,
              fmt::format("{}: the run there went on to update {}; the experiment ends at {}",
                          folder.string(), result.state.step, updates),
              "remove that folder or choose another one with -o: the run is made again");
}

}  // namespace fovea
