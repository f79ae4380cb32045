// SPDX-License-Identifier: Apache-2.0
#include "cli/run_folder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/task/language_model.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

// The manifest goes last: until then the folder can still be told to be ours.
constexpr std::array<std::string_view, 6> kOurFiles = {"model.safetensors", "metrics.jsonl",
                                                       "loss.svg",          "config.json",
                                                       "tokenizer.txt",     kManifestName};
constexpr std::string_view kCheckpoints = "checkpoints";

bool is_free(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  if (!fs::is_directory(folder)) return false;
  const fs::directory_iterator files(folder);
  return std::all_of(begin(files), end(files), [](const fs::directory_entry& entry) {
    return entry.path().filename() == kLockName;
  });
}

bool is_ours(const fs::path& folder) { return fs::exists(folder / kManifestName); }

// A run that was killed before it had its manifest has left its lock, which it took when nothing of
// anybody else's was in the way.
bool was_begun(const fs::path& folder) { return fs::exists(folder / kLockName); }

bool is_checkpoint_name(const std::string& name) { return name.rfind("step-", 0) == 0; }

// "config.json.tmp.1234" of a process that was killed.
bool is_leftover(const std::string& name) {
  return std::any_of(kOurFiles.begin(), kOurFiles.end(), [&](std::string_view file) {
    return name.rfind(std::string(file) + ".tmp.", 0) == 0;
  });
}

void require_replaceable(const fs::path& folder) {
  if (is_ours(folder)) {
    read_manifest(folder);  // some other tool's manifest is not ours
    return;
  }
  if (was_begun(folder)) return;
  for (const std::string_view file : kOurFiles) {
    if (!fs::exists(folder / file)) continue;
    throw Error(ErrorCode::kOutputExists,
                fmt::format("{}: {} is there, and not from a run of fovea", folder.string(), file),
                "choose another folder, or move that file away");
  }
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_leftover(entry.path().filename().string())) fs::remove(entry.path(), error);
  }
}

void remove_run(const fs::path& folder) {
  std::error_code error;
  const fs::path checkpoints = folder / kCheckpoints;
  if (fs::is_directory(checkpoints)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
      if (is_checkpoint_name(entry.path().filename().string())) fs::remove_all(entry.path(), error);
    }
    fs::remove(checkpoints, error);  // stays if something else is in it
  }
  for (const std::string_view file : kOurFiles) fs::remove(folder / file, error);
}

// Of the checkpoint that a run would go on from, or of the run itself.
std::string stored_file(const fs::path& folder, const fs::path& checkpoint, std::string_view name) {
  if (!checkpoint.empty()) return load_checkpoint(checkpoint).bytes(name);
  if (has_checkpoints(folder / kCheckpoints))
    return load_newest_checkpoint(folder / kCheckpoints).checkpoint.bytes(name);
  return read_model_file(folder, name);
}

}  // namespace

FolderUse folder_use(const Arguments& arguments) {
  if (arguments.has("resume")) return FolderUse::kResume;
  return arguments.on("overwrite") ? FolderUse::kOverwrite : FolderUse::kNew;
}

void check_run_folder(const fs::path& folder, FolderUse use) {
  if (fs::exists(folder) && !fs::is_directory(folder)) {
    throw Error(ErrorCode::kOutputExists,
                fmt::format("{}: exists, and is no folder", folder.string()),
                "choose another name for the output folder");
  }
  if (use == FolderUse::kResume) {
    if (is_ours(folder)) return;
    throw Error(ErrorCode::kNoCheckpoint, fmt::format("{}: no run here to resume", folder.string()),
                was_begun(folder) ? "train from the start, with --overwrite instead of --resume"
                                  : "train from the start, without --resume");
  }
  if (is_free(folder)) return;
  if (use == FolderUse::kOverwrite) return require_replaceable(folder);
  throw Error(ErrorCode::kOutputExists, fmt::format("{}: the folder is not empty", folder.string()),
              is_ours(folder) ? "--resume goes on with the run there, --overwrite replaces it"
                              : "choose another folder, or say --overwrite to write into this one");
}

std::unique_ptr<RunLock> lock_run_folder(const fs::path& folder, FolderUse use) {
  create_folders(folder);
  auto lock = std::make_unique<RunLock>(folder);
  check_run_folder(folder, use);
  return lock;
}

void clear_run_folder(const fs::path& folder, FolderUse use) {
  if (use == FolderUse::kOverwrite) remove_run(folder);
  if (use != FolderUse::kNew) remove_leftovers(folder);
}

LanguageModelSettings stored_settings(const fs::path& folder, const fs::path& checkpoint) {
  check_run_folder(folder, FolderUse::kResume);
  const fs::path where = checkpoint.empty() ? folder : checkpoint;
  return settings_from_text(stored_file(folder, checkpoint, "config.json"),
                            (where / "config.json").string());
}

std::unique_ptr<Tokenizer> stored_tokenizer(const fs::path& folder, const fs::path& checkpoint) {
  const fs::path where = checkpoint.empty() ? folder : checkpoint;
  return make_tokenizer(tokenizer_data_from_text(stored_file(folder, checkpoint, "tokenizer.txt"),
                                                 (where / "tokenizer.txt").string()));
}

}  // namespace fovea::cli
