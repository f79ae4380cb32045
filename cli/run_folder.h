// SPDX-License-Identifier: Apache-2.0
// The folder that a run is written to: refused, resumed or replaced.
#pragma once

#include <filesystem>
#include <memory>

#include "cli/command_line.h"
#include "fovea/task/language_model_settings.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/run_lock.h"

namespace fovea::cli {

enum class FolderUse { kNew, kResume, kOverwrite };

/// As --resume and --overwrite say.
FolderUse folder_use(const Arguments& arguments);

/// Writes nothing. Throws kOutputExists if the folder is not empty and kNew (a lock that was left
/// over is nothing), or if kOverwrite would replace files that no run of fovea has written;
/// kNoCheckpoint if there is nothing to resume.
void check_run_folder(const std::filesystem::path& folder, FolderUse use);

/// Creates the folder and keeps other trainings out of it. Throws kOutputExists if one is there, or
/// has been since check_run_folder; kWrite.
std::unique_ptr<RunLock> lock_run_folder(const std::filesystem::path& folder, FolderUse use);

/// With kOverwrite, removes what a run of fovea has written there, and nothing else.
void clear_run_folder(const std::filesystem::path& folder, FolderUse use);

/// What a run was begun with: as its newest whole checkpoint has it, or the one that is named, or
/// the run itself where no checkpoint was due yet.
LanguageModelSettings stored_settings(const std::filesystem::path& folder,
                                      const std::filesystem::path& checkpoint);
std::unique_ptr<Tokenizer> stored_tokenizer(const std::filesystem::path& folder,
                                            const std::filesystem::path& checkpoint);

}  // namespace fovea::cli
