// SPDX-License-Identifier: Apache-2.0
#include "cli/run_folder.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/task/classify/search.h"
#include "fovea/task/language_model/preference.h"
#include "fovea/task/report/run_page.h"
#include "fovea/task/task_table.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/text/vocabulary.h"
#include "fovea/train/average.h"
#include "fovea/train/checkpoint.h"
#include "fovea/train/model_folder.h"
#include "fovea/train/run_state.h"

namespace fovea::cli {

namespace {

namespace fs = std::filesystem;

// The files of the tasks (TaskRow::files). Few runs write them: others of these names may lie
// beside a run.
std::vector<std::string_view> files_of_tasks() {
  std::vector<std::string_view> files;
  for (const TaskRow& task : task_table()) {
    for (const std::string_view file : task.files) {
      if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(file);
    }
  }
  return files;
}

// The files that a new run writes before the manifest.
std::vector<std::string_view> early_files() {
  std::vector<std::string_view> files = {"config.json", "tokenizer.txt"};
  const std::vector<std::string_view> others = files_of_tasks();
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

// In the order of removal. The manifest goes last: until then the folder can be recognised as a
// run.
std::vector<std::string_view> our_files() {
  std::vector<std::string_view> files = {"model.safetensors", "metrics.jsonl", kStartsName,
                                         "loss.svg",          kReportName,     kTrialsName,
                                         "config.json"};
  const std::vector<std::string_view> others = files_of_tasks();
  files.insert(files.end(), others.begin(), others.end());
  files.insert(files.end(), {"tokenizer.txt", kManifestName});
  return files;
}

// "target-tokenizer.txt" of the list of words "target-vocab.txt"; "" of another file.
std::string tokenizer_of_list(const std::string& name) {
  if (!name.ends_with(kWordListName)) return "";
  return name.substr(0, name.size() - kWordListName.size()) + "tokenizer.txt";
}

// A folder is a run if it has a manifest, which is written last.
bool is_run(const fs::path& folder) { return fs::exists(folder / kManifestName); }

bool is_leftover(std::string_view name) {
  return contains(our_files(), interrupted_write_of(name));
}

bool has_whole_manifest(const fs::path& folder) {
  try {
    return is_run(folder) && !read_manifest(folder).kind.empty();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelDamaged) throw;
    return false;
  }
}

// Whether a list of words is that of the run in the folder. Other tools write lists that look the
// same: it has to be in the manifest, or to have the words of the tokenizer beside it.
bool is_from_tokenizer(const std::string& list, const fs::path& file) {
  const fs::path folder = file.parent_path();
  const std::string name = file.filename().string();
  if (has_whole_manifest(folder)) return read_manifest(folder).find(name) != nullptr;
  const fs::path tokenizer = folder / tokenizer_of_list(name);
  return list == word_list_text(tokenizer_data_from_text(read_file(tokenizer), tokenizer.string()));
}

// Throws if a config.json is that of no kind of model that is trained in a folder.
void require_config(const std::string& text, const std::string& name) {
  for (const TaskRow& task : task_table()) {
    try {
      return task.check_config(text, name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kModelWrongKind) throw;
    }
  }
  throw Error(ErrorCode::kModelWrongKind, name + ": no kind of model", "");
}

// Whether one of early_files() has contents that fovea can read.
bool is_from_fovea(const fs::path& file) {
  try {
    if (file.filename() == kReferenceName) {
      read_safetensors(file, ChecksumRule::kRequired);
      return true;
    }
    const std::string text = read_file(file);
    if (file.filename() == "config.json") {
      require_config(text, file.string());
    } else if (!tokenizer_of_list(file.filename().string()).empty()) {
      return is_from_tokenizer(text, file);
    } else {
      tokenizer_data_from_text(text, file.string());
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Whether a folder is empty, apart from the remains of a run that ended before it wrote its
// manifest.
bool is_free(const fs::path& folder) {
  if (!fs::exists(folder)) return true;
  if (!fs::is_directory(folder) || is_run(folder)) return false;
  const std::vector<std::string> names = names_in(folder);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == kLockName || is_leftover(name) ||
           (contains(early_files(), name) && is_from_fovea(folder / name));
  });
}

bool was_begun(const fs::path& folder) {
  return fs::is_directory(folder) && is_free(folder) && !names_in(folder).empty();
}

[[noreturn]] void fail_foreign(const fs::path& folder, std::string_view name) {
  throw Error(ErrorCode::kOutputExists,
              fmt::format("{}: {} is there, and not from a run of fovea", folder.string(), name),
              "choose another folder, or move that away");
}

// Only a run of fovea may be replaced. It is recognised by its manifest or by the files that are
// written before it.
void require_replaceable(const fs::path& folder) {
  for (const std::string_view name : files_of_tasks()) {
    if (fs::exists(folder / name) && !is_from_fovea(folder / name)) fail_foreign(folder, name);
  }
  if (has_whole_manifest(folder)) return;
  bool known = false;
  for (const std::string_view name : early_files()) {
    if (!fs::exists(folder / name)) continue;
    if (!is_from_fovea(folder / name)) fail_foreign(folder, name);
    known = true;
  }
  if (known) return;
  for (const std::string_view name : our_files()) {
    if (fs::exists(folder / name)) fail_foreign(folder, name);
  }
  const fs::path checkpoints = checkpoints_of(folder);
  if (!checkpoint_steps(checkpoints).empty()) {
    fail_foreign(folder, checkpoints.filename().string());
  }
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const std::string& name : names_in(folder)) {
    if (is_leftover(name)) fs::remove(folder / name, error);
  }
}

void remove_run(const fs::path& folder) {
  remove_checkpoints(checkpoints_of(folder));
  remove_best_weights(folder);
  for (const std::string_view file : our_files()) remove_file(folder / file);
}

[[noreturn]] void fail_begun(const fs::path& folder) {
  throw Error(
      ErrorCode::kNoCheckpoint,
      fmt::format("{}: the run there ended before it had anything to resume", folder.string()),
      "begin it again: the same command without --resume");
}

bool is_checkpoint(const fs::path& path) { return read_manifest(path).kind == "checkpoint"; }

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

// Sets the place from --resume=PATH: the path is a run or a checkpoint.
void name_place(Place& place, const fs::path& path) {
  if (was_begun(path)) fail_begun(path);
  if (!is_run(path)) {
    throw Error(ErrorCode::kNoCheckpoint,
                fmt::format("--resume: {}: neither a run nor a checkpoint", path.string()),
                "name the folder of a run, or one like DIR/checkpoints/step-000500");
  }
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "run/"
  if (is_checkpoint(path)) {
    place.checkpoint = path;
    folder = folder.parent_path().parent_path();
    if (!is_run(folder) || !same_folder(checkpoints_of(folder), path / "..")) {
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

std::string_view interrupted_write_of(std::string_view name) {
  constexpr std::string_view kMark = ".tmp.";
  const std::size_t mark = name.find(kMark);
  if (mark == std::string_view::npos) return {};
  const std::string_view numbers = name.substr(mark + kMark.size());
  const std::size_t dot = numbers.find('.');
  const bool is_remain = dot != std::string_view::npos && is_all_digits(numbers.substr(0, dot)) &&
                         is_all_digits(numbers.substr(dot + 1));
  return is_remain ? name.substr(0, mark) : std::string_view();
}

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
    throw Error(ErrorCode::kUsage, "--resume and --overwrite exclude each other",
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
    if (is_run(folder)) return;
    if (was_begun(folder)) fail_begun(folder);
    throw Error(ErrorCode::kNoCheckpoint, fmt::format("{}: no run here to resume", folder.string()),
                "check the path, or train from the start, without --resume");
  }
  if (is_free(folder)) return;
  if (use == FolderUse::kOverwrite) return require_replaceable(folder);
  throw Error(ErrorCode::kOutputExists, fmt::format("{}: the folder is not empty", folder.string()),
              is_run(folder) ? "--resume goes on with the run there, --overwrite replaces it"
                             : "choose another folder, or say --overwrite to write into this one");
}

RunFolder::RunFolder(const fs::path& folder, FolderUse use)
    : folder_(folder), use_(use), made_(folder), lock_(folder) {
  check_run_folder(folder, use);
}

void RunFolder::clear() const {
  if (use_ != FolderUse::kResume) remove_run(folder_);
  remove_leftovers(folder_);
}

void RunFolder::keep_model() const {
  remove_checkpoints(checkpoints_of(folder_));
  remove_best_weights(folder_);
}

bool RunFolder::remove_unsaved() const noexcept {
  try {
    const bool is_new = use_ != FolderUse::kResume && lock_.is_in_place();
    // Without its manifest it was meddled with: what was moved away may come back.
    const bool lost_manifest = !is_run(folder_) && fs::exists(folder_ / "config.json");
    if (!is_new || lost_manifest || fs::exists(folder_ / kWeightsName) ||
        !checkpoint_steps(checkpoints_of(folder_)).empty()) {
      return false;
    }
    clear();
    return true;
  } catch (const std::exception&) {
    return false;  // the caller handles another error, which says more
  }
}

std::string StoredRun::file(std::string_view name) const {
  return checkpoint ? checkpoint->bytes(name) : read_model_file(folder, name);
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
  run.folder = run.checkpoint ? run.checkpoint->path : place.folder;
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
