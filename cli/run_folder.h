// SPDX-License-Identifier: Apache-2.0
// The folder that a run is written to: refused, resumed or replaced.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "fovea/base/file.h"
#include "fovea/task/language_model_settings.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/run_lock.h"

namespace fovea::cli {

enum class FolderUse { kNew, kResume, kOverwrite };

/// Where a run is, or will be.
struct Place {
  std::filesystem::path folder;  ///< empty if none was named
  FolderUse use = FolderUse::kNew;
  std::filesystem::path checkpoint;  ///< that was named to go on from; else empty
  bool goes_back = false;            ///< what the run did after that checkpoint may be lost
};

/// As --output, --resume[=PATH] and --overwrite say. PATH is a checkpoint of the run, or the run's
/// folder; --overwrite beside a checkpoint goes back to it. Throws kUsage, kNoCheckpoint,
/// kModelDamaged.
Place place_of(const Arguments& arguments, const std::string& output);

/// Writes nothing. Throws kOutputExists if the folder is not empty and kNew (what a run has left
/// that ended before its manifest is nothing), or if kOverwrite would replace files that no run of
/// fovea has written; kNoCheckpoint if there is nothing to resume.
void check_run_folder(const std::filesystem::path& folder, FolderUse use);

/// The folder of the run that is at work in this process. No other training is let in, and a folder
/// that was made for it and stays empty is removed with it.
class RunFolder {
 public:
  /// Throws kOutputExists if another training is there, or has been since check_run_folder; kWrite,
  /// kDiskFull.
  RunFolder(const std::filesystem::path& folder, FolderUse use);

  /// Removes what interrupted writes have left and, unless the run is resumed, all that an earlier
  /// run of fovea has written. Throws kWrite if some of it stays.
  void clear() const;

  /// After a failure: removes a new run that has saved no weights. Says whether it did.
  bool remove_unsaved() const noexcept;

 private:
  class MadeFolders {
   public:
    explicit MadeFolders(const std::filesystem::path& folder) : made_(create_folders(folder)) {}
    ~MadeFolders() { remove_empty_folders(made_); }
    MadeFolders(const MadeFolders&) = delete;
    MadeFolders& operator=(const MadeFolders&) = delete;

   private:
    std::vector<std::filesystem::path> made_;
  };

  const std::filesystem::path folder_;
  const FolderUse use_;
  const MadeFolders made_;  // outlives the lock, which lies in it
  const RunLock lock_;
};

/// What a run would go on from: its newest whole checkpoint, or the one that was named; the run
/// itself where no checkpoint was due yet.
struct StoredRun {
  LanguageModelSettings settings;
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> warnings;  ///< of damaged checkpoints that were passed over
};
StoredRun read_run(const Place& place);

/// Throws kOutputExists if the run has gone beyond the checkpoint that was named, unless what came
/// after it may be lost.
void require_nothing_lost(const Place& place, const StoredRun& run);

}  // namespace fovea::cli
