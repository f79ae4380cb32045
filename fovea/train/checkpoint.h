// SPDX-License-Identifier: Apache-2.0
// Checkpoints: folders step-000500 that are whole or not there, whatever happens meanwhile.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/train/manifest.h"

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

/// The steps of the published checkpoints, whole or damaged, ascending. A save that was interrupted
/// leaves none; what does not bear the name of a checkpoint is none. Throws kRead if the folder is
/// there and cannot be listed.
std::vector<index> checkpoint_steps(const std::filesystem::path& folder);

/// `folder`/step-000500: where the checkpoint of a step is, or would be.
std::filesystem::path checkpoint_path(const std::filesystem::path& folder, index step);

/// Removes what interrupted saves have left, and of the checkpoints up to `step` all but the newest
/// `keep`. Returns a warning for each that cannot be removed: the next call tries again. For those
/// that hold the run's lock, so that nobody else is saving.
std::vector<std::string> prune_checkpoints(const std::filesystem::path& folder, index step,
                                           index keep);

/// Removes all checkpoints and interrupted saves, and the folder if nothing else is in it. Throws
/// kWrite if a checkpoint stays.
void remove_checkpoints(const std::filesystem::path& folder);

/// Those of later steps: a run that goes back to `step` has not made them. Throws kWrite if one
/// stays.
void remove_checkpoints_after(const std::filesystem::path& folder, index step);

struct SavedCheckpoint {
  std::filesystem::path path;
  std::vector<std::string> warnings;  ///< of what should be removed and could not be
};

/// Saves the files as `folder`/step-NNNNNN. The folder is created if need be, those above it are
/// not: a run that was moved away does not come back as a folder with one checkpoint. The files are
/// written into a temporary folder, flushed, listed in its manifest, and appear by one rename; on
/// an error nothing has changed and nothing is left over. If the step was saved before, the new
/// folder takes its place.
///
/// Then prune_checkpoints keeps the newest `keep` (at least 1), and those of later steps are
/// removed as well: who goes on from an earlier checkpoint gives up what came after it. The caller
/// holds the run's lock.
///
/// Throws kDiskFull (before anything is written, if less than 1.2 times the size is free), kWrite.
SavedCheckpoint save_checkpoint(const std::filesystem::path& folder, index step,
                                const std::vector<NamedFile>& files, index keep);

struct NewestCheckpoint {
  Checkpoint checkpoint;
  std::vector<std::string> warnings;  ///< of each newer one: why it was passed over
};

/// The newest one whose manifest and files verify. Removes and writes nothing. Throws kNoCheckpoint
/// if `folder` has none, kModelDamaged (which names the newest and its damage) if it has none that
/// is whole.
NewestCheckpoint load_newest_checkpoint(const std::filesystem::path& folder);

/// The checkpoint in `path`. Throws kNoCheckpoint if there is no such folder, kModelDamaged with
/// the name of the file and what is wrong with it.
Checkpoint load_checkpoint(const std::filesystem::path& path);

}  // namespace fovea
