// SPDX-License-Identifier: Apache-2.0
// Checkpoints: folders such as step-000500. Such a folder is complete or does not exist, even after
// a crash during a save.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/train/model_folder.h"

namespace fovea {

struct Checkpoint {
  index step = 0;
  std::filesystem::path path;
  std::vector<NamedFile> files;

  /// The contents of a file. Throws kModelDamaged if there is none of that name.
  const std::string& bytes(std::string_view name) const;
};

/// The checkpoints of a run folder.
std::filesystem::path checkpoints_of(const std::filesystem::path& run);

/// The steps of the published checkpoints, whole or damaged, ascending. Interrupted saves and other
/// names do not count. Throws kRead if the folder exists and cannot be listed.
std::vector<index> checkpoint_steps(const std::filesystem::path& folder);

/// `folder`/step-000500: the path of the checkpoint of a step, whether it exists or not.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, index step);

/// Removes the remains of interrupted saves and, of the checkpoints up to `step`, all but the
/// newest `keep`. Returns a warning for each that cannot be removed; the next call tries again. The
/// caller must hold the run's lock, so that no other process is saving.
std::vector<std::string> prune_checkpoints(const std::filesystem::path& folder, index step,
                                           index keep);

/// Removes all checkpoints and interrupted saves, and the folder if nothing else is in it. Throws
/// kWrite if a checkpoint stays.
void remove_checkpoints(const std::filesystem::path& folder);

/// Removes the checkpoints of later steps than `step`, when a run goes back to `step`. Throws
/// kWrite if one stays.
void remove_checkpoints_after(const std::filesystem::path& folder, index step);

struct SavedCheckpoint {
  std::filesystem::path path;
  std::vector<std::string> warnings;  ///< files that could not be removed
};

/// Saves the files as `folder`/step-NNNNNN. `folder` is created if it is missing, its parents are
/// not: a run that was moved away does not come back as a folder with one checkpoint. The files are
/// written to a temporary folder, flushed and listed in its manifest; one rename publishes the
/// folder. On an error nothing has changed and nothing is left over. If the step was saved before,
/// the new folder replaces the old one.
///
/// Then prune_checkpoints keeps the newest `keep` (at least 1). Checkpoints of later steps are
/// removed as well: a run that goes on from an earlier checkpoint gives them up. The caller must
/// hold the run's lock.
///
/// Throws kDiskFull (before anything is written, if less than 1.2 times the size is free), kWrite.
SavedCheckpoint save_checkpoint(const std::filesystem::path& folder, index step,
                                const std::vector<NamedFile>& files, index keep);

struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> warnings;  ///< for each newer checkpoint: why it was skipped
};

/// The newest checkpoint whose manifest and files pass verification. Removes and writes nothing.
/// Throws kNoCheckpoint if `folder` has no checkpoint, kModelDamaged (which names the newest and
/// its damage) if all are damaged.
NewestCheckpoint load_newest_checkpoint(const std::filesystem::path& folder);

/// The checkpoint in `path`. Throws kNoCheckpoint if there is no such folder, kModelDamaged with
/// the name of the file and what is wrong with it.
Checkpoint load_checkpoint(const std::filesystem::path& path);

}  // namespace fovea
