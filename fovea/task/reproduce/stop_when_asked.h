// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

#include "fovea/train/manifest.h"
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

}  // namespace fovea
