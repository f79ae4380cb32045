// SPDX-License-Identifier: Apache-2.0
// The folder that a run is written to: whether it may be used, resumed or replaced.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.h"
#include "fovea/base/file.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/run_lock.h"

namespace fovea::cli {

enum class FolderUse { kNew, kResume, kOverwrite };

/// The place of a run on the disk.
struct Place {
  std::filesystem::path folder;  ///< empty if none was named
  FolderUse use = FolderUse::kNew;
  std::filesystem::path checkpoint;  ///< the checkpoint named in --resume=PATH; else empty
  bool goes_back = false;            ///< --overwrite: what came after that checkpoint may be lost
};

/// Reads --output, --resume[=PATH] and --overwrite. PATH is a checkpoint of the run, or the run's
/// folder; --overwrite together with a checkpoint goes back to it. Throws kUsage, kNoCheckpoint,
/// kModelDamaged.
Place place_of(const Arguments& arguments, const std::string& output);

/// The file that an interrupted write was for: "config.json" of "config.json.tmp.1234.0"; "" of a
/// name that is no remain of one.
std::string_view interrupted_write_of(std::string_view name);

/// Checks the folder; writes nothing. Throws kOutputExists with kNew if the folder is not empty
/// (the remains of a run that ended before its manifest do not count), and with kOverwrite if it
/// would replace files that no run of fovea has written; kNoCheckpoint if there is nothing to
/// resume.
void check_run_folder(const std::filesystem::path& folder, FolderUse use);

/// The locked folder of the run in this process: no other training can use it. If the folder was
/// created here and stays empty, the destructor removes it.
class RunFolder {
 public:
  /// Throws kOutputExists if another training holds the folder, or has written to it since
  /// check_run_folder; kWrite, kDiskFull.
  RunFolder(const std::filesystem::path& folder, FolderUse use);

  /// Removes the remains of interrupted writes and, unless the run is resumed, all files of an
  /// earlier run of fovea. Throws kWrite if some of them stay.
  void clear() const;

  /// Removes what only a run that goes on needs. Throws kWrite if some of it stays.
  void keep_model() const;

  /// After a failure: removes a new run that has saved no weights. Returns whether it did.
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

/// The start of a resumed run: its newest intact checkpoint, or the one that was named; only the
/// files of the model if there is no checkpoint yet.
struct StoredRun {
  std::filesystem::path folder;  ///< of the checkpoint, or of the run
  std::optional<Checkpoint> checkpoint;
  std::vector<std::string> warnings;  ///< about damaged checkpoints that were skipped

  /// The contents of config.json and the like. Throws kModelDamaged, kModelMissing.
  std::string file(std::string_view name) const;
  /// Its path, for messages.
  std::string path(std::string_view name) const { return (folder / name).string(); }
};
StoredRun read_run(const Place& place);

/// Throws kOutputExists if the run has gone beyond the checkpoint that was named, unless
/// --overwrite allows losing what came after it.
void require_nothing_lost(const Place& place, const StoredRun& run);

}  // namespace fovea::cli
