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
  remove_checkpoints(checkpoints_of(folder));
  std::error_code error;
  for (const std::string_view file : kOurFiles) fs::remove(folder / file, error);
}

bool is_checkpoint(const fs::path& path) { return read_manifest(path).kind == "checkpoint"; }

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// --resume=PATH: what lies there decides what it means.
void name_place(Place& place, const fs::path& path) {
  if (!is_ours(path)) {
    throw Error(ErrorCode::kNoCheckpoint,
                fmt::format("--resume: {}: neither a run nor a checkpoint", path.string()),
                "name the folder of a run, or one like DIR/checkpoints/step-000500");
  }
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "run/"
  if (is_checkpoint(path)) {
    place.checkpoint = path;
    folder = folder.parent_path().parent_path();
    if (!is_ours(folder) || !same_folder(checkpoints_of(folder), path / "..")) {
      throw Error(ErrorCode::kNoCheckpoint,
                  fmt::format("--resume: {}: a checkpoint outside its run", path.string()),
                  "copy it into the folder checkpoints of its run");
    }
  }
  if (place.folder.empty()) place.folder = folder;
  if (same_folder(place.folder, folder)) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("--resume: {} is not of the run in {}", path.string(), place.folder.string()),
      "name one run: leave --output out, or give its own folder");
}

}  // namespace

Place place_of(const Arguments& arguments, const std::string& output) {
  Place place{.folder = output, .use = FolderUse::kNew, .checkpoint = {}};
  const bool overwrite = arguments.on("overwrite");
  if (overwrite) place.use = FolderUse::kOverwrite;
  if (!arguments.has("resume")) return place;
  place.use = FolderUse::kResume;
  const std::string path = arguments.text("resume");
  if (!path.empty()) name_place(place, path);
  place.goes_back = overwrite && !place.checkpoint.empty();
  if (overwrite && !place.goes_back) {
    throw Error(ErrorCode::kUsage, "train lm: --resume and --overwrite exclude each other",
                "--resume goes on, --overwrite begins anew; together they go back to a checkpoint "
                "that is named");
  }
  return place;
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
                                  : "check the path, or train from the start, without --resume");
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

StoredRun read_run(const Place& place) {
  check_run_folder(place.folder, FolderUse::kResume);
  StoredRun run;
  const fs::path checkpoints = checkpoints_of(place.folder);
  if (!place.checkpoint.empty()) {
    run.checkpoint = load_checkpoint(place.checkpoint);
  } else if (!checkpoint_steps(checkpoints).empty()) {
    NewestCheckpoint newest = load_newest_checkpoint(checkpoints);
    run.checkpoint = std::move(newest.checkpoint);
    run.warnings = std::move(newest.warnings);
  }
  const fs::path where = run.checkpoint ? run.checkpoint->path : place.folder;
  const auto file = [&](std::string_view name) {
    return run.checkpoint ? run.checkpoint->bytes(name) : read_model_file(place.folder, name);
  };
  run.settings = settings_from_text(file("config.json"), (where / "config.json").string());
  run.tokenizer = make_tokenizer(
      tokenizer_data_from_text(file("tokenizer.txt"), (where / "tokenizer.txt").string()));
  return run;
}

void require_nothing_lost(const Place& place, const StoredRun& run) {
  if (place.checkpoint.empty() || place.goes_back) return;
  const std::vector<index> steps = checkpoint_steps(checkpoints_of(place.folder));
  const index step = state_of(*run.checkpoint).step;
  if (steps.empty() || step >= steps.back()) return;
  throw Error(
      ErrorCode::kOutputExists,
      fmt::format("--resume: {}: the run has gone on to update {}; going back to {} removes "
                  "what came after it, the best model included",
                  place.folder.string(), steps.back(), step),
      "add --overwrite to go back, leave the checkpoint out to go on, or go back in a copy "
      "of the folder");
}

}  // namespace fovea::cli
