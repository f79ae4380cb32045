// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/file.h"

namespace fovea {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kKind = "checkpoint";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kTemporary = ".tmp.";
constexpr std::string_view kAside = ".aside";  // as exchange_folders names it

std::string folder_name(index step) { return fmt::format("{}{:06}", kPrefix, step); }

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// The step in the name of a checkpoint; nothing for any other name.
std::optional<index> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = number_in<index>(std::string_view(name).substr(kPrefix.size()));
  return step && folder_name(*step) == name ? step : std::nullopt;
}

/// Whether a name is a remain of a save or of the removal of a checkpoint: "step-000500.tmp.1234",
/// with ".aside" at the end if two folders were being exchanged.
bool is_leftover(const std::string& name) {
  const std::size_t mark = name.find(kTemporary);
  if (mark == std::string::npos || !step_of(name.substr(0, mark))) return false;
  std::string_view process = std::string_view(name).substr(mark + kTemporary.size());
  if (process.ends_with(kAside)) process.remove_suffix(kAside.size());
  return number_in<pid_t>(process).has_value();
}

std::vector<std::string> names_if_any(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names = names_in(folder, error);
  if (error && error != std::errc::no_such_file_or_directory) {
    fail(ErrorCode::kRead, "{}: cannot list the folder: {}", folder.string(), error.message());
  }
  return names;
}

std::vector<index> newest_first(const fs::path& folder) {
  std::vector<index> steps = checkpoint_steps(folder);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

fs::path temporary_path(const fs::path& folder, index step) {
  return folder / fmt::format("{}{}{}", folder_name(step), kTemporary, ::getpid());
}

// Removes folders; `warnings` tells which could not be removed.
class Remover {
 public:
  std::vector<std::string> warnings;

  // Renames the folder first: if the process is killed meanwhile, the rest is removed later and is
  // not taken for a checkpoint.
  void remove_checkpoint(const fs::path& folder, index step) {
    const fs::path path = checkpoint_path(folder, step), doomed = temporary_path(folder, step);
    std::error_code error;
    fs::rename(path, doomed, error);
    error ? warn(path, error) : remove_folder(doomed);
  }

  void remove_interrupted_saves(const fs::path& folder) {
    for (const std::string& name : names_if_any(folder)) {
      if (is_leftover(name)) remove_folder(folder / name);
    }
  }

  void remove_folder(const fs::path& path) {
    std::error_code error;
    remove_tree(path, error);
    if (error) warn(path, error);
  }

 private:
  void warn(const fs::path& path, const std::error_code& error) {
    warnings.push_back(fmt::format("{}: cannot be removed: {}; the next save tries again",
                                   path.string(), error.message()));
  }
};

void write_files(const fs::path& folder, index step, const std::vector<NamedFile>& files) {
  const Manifest manifest = manifest_of(kKind, step, files);
  create_folders(folder);
  for (const NamedFile& file : files) {
    write_file_durably(folder / file.name, file.bytes, file.more);
  }
  write_file_durably(folder / kManifestName, manifest_text(manifest));
}

std::uintmax_t size_of(const std::vector<NamedFile>& files) {
  std::uintmax_t bytes = 0;
  for (const NamedFile& file : files) bytes += file.size();
  return bytes;
}

}  // namespace

const std::string& Checkpoint::bytes(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const NamedFile& file) { return file.name == name; });
  if (found == files.end())
    fail(ErrorCode::kModelDamaged, "{}: {} is missing", path.string(), name);
  return found->bytes;
}

SavedCheckpoint save_checkpoint(const fs::path& folder, index step,
                                const std::vector<NamedFile>& files, index keep) {
  check(step >= 0 && keep >= 1, "checkpoint: step {} cannot be saved, keeping {}", step, keep);
  const bool made = create_folder(folder);
  const fs::path temporary = temporary_path(folder, step), target = checkpoint_path(folder, step);
  Remover before;
  try {
    before.remove_interrupted_saves(folder);  // to free the space that they take
    require_disk_space(folder, size_of(files));
    write_files(temporary, step, files);
    if (fs::exists(target)) {
      exchange_folders(temporary, target);
    } else {
      publish_folder(temporary, target);
    }
  } catch (...) {
    before.remove_folder(temporary);
    if (made) remove_empty_folders(std::array{folder});
    throw;
  }
  // This removes the old checkpoint of this step, what could not be removed before, and checkpoints
  // that are too old.
  Remover after;
  try {
    after.warnings = prune_checkpoints(folder, step, keep);
    for (const index later : checkpoint_steps(folder)) {
      if (later > step) after.remove_checkpoint(folder, later);
    }
  } catch (const Error& error) {
    after.warnings.push_back(error.what());  // the checkpoint is saved; the next save tries again
  }
  return {target, std::move(after.warnings)};
}

std::vector<std::string> prune_checkpoints(const fs::path& folder, index step, index keep) {
  Remover remover;
  remover.remove_interrupted_saves(folder);
  index kept = 0;
  for (const index saved : newest_first(folder)) {
    if (saved <= step && ++kept > keep) remover.remove_checkpoint(folder, saved);
  }
  return std::move(remover.warnings);
}

std::vector<index> checkpoint_steps(const fs::path& folder) {
  std::vector<index> steps;
  for (const std::string& name : names_if_any(folder)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path checkpoints_of(const fs::path& run) { return run / "checkpoints"; }

fs::path checkpoint_path(const fs::path& folder, index step) { return folder / folder_name(step); }

void remove_checkpoints(const fs::path& folder) {
  remove_checkpoints_after(folder, -1);
  Remover().remove_interrupted_saves(folder);
  remove_empty_folders(std::array{folder});
}

void remove_checkpoints_after(const fs::path& folder, index step) {
  Remover remover;
  for (const index later : checkpoint_steps(folder)) {
    if (later > step) remover.remove_checkpoint(folder, later);
  }
  const std::vector<index> left = checkpoint_steps(folder);
  if (left.empty() || left.back() <= step) return;
  throw Error(ErrorCode::kWrite,
              fmt::format("{}: cannot be removed", checkpoint_path(folder, left.back()).string()),
              "a run cannot begin or go back while later checkpoints are in its way; look at the "
              "permissions of the folder");
}

NewestCheckpoint load_newest_checkpoint(const fs::path& folder) {
  std::optional<Error> newest;
  NewestCheckpoint result;
  for (const index step : newest_first(folder)) {
    try {
      result.checkpoint = load_checkpoint(checkpoint_path(folder, step));
      return result;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kOutOfMemory) throw;
      result.warnings.push_back(fmt::format("passed over a damaged checkpoint: {}", error.what()));
      if (!newest) newest = error;
    }
  }
  if (newest) {
    throw Error(ErrorCode::kModelDamaged,
                fmt::format("no checkpoint is whole; the newest: {}", newest->what()),
                "train from the start, or restore the folder from a copy");
  }
  throw Error(ErrorCode::kNoCheckpoint,
              fmt::format("{}: no checkpoint to resume from", folder.string()),
              "train from the start, without --resume");
}

Checkpoint load_checkpoint(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    throw Error(ErrorCode::kNoCheckpoint, fmt::format("{}: no such checkpoint", path.string()),
                "name a folder like checkpoints/step-000500");
  }
  const Manifest manifest = read_manifest(path);
  if (manifest.kind != kKind) {
    throw Error(ErrorCode::kModelWrongKind,
                fmt::format("{}: expected a checkpoint, got a {}", path.string(), manifest.kind),
                "name a folder like checkpoints/step-000500");
  }
  return {manifest.step, path, read_all_verified(path, manifest)};
}

}  // namespace fovea
