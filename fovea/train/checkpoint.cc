// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/checkpoint.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
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

std::string folder_name(index step) { return fmt::format("{}{:06}", kPrefix, step); }

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

/// The step of a folder that we named, and of no other.
std::optional<index> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto step = number_in<index>(std::string_view(name).substr(kPrefix.size()));
  return step && folder_name(*step) == name ? step : std::nullopt;
}

/// A leftover: a temporary folder whose process lives no more, or is this one (which is not
/// saving).
bool is_stale(const std::string& name) {
  const std::size_t mark = name.find(kTemporary);
  if (mark == std::string::npos || !step_of(name.substr(0, mark))) return false;
  const std::string_view after = std::string_view(name).substr(mark + kTemporary.size());
  const auto process = number_in<pid_t>(after.substr(0, after.find('.')));
  if (!process || *process == 0) return false;
  return *process == ::getpid() || (::kill(*process, 0) != 0 && errno == ESRCH);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename().string());
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

// Under another name first: what a kill leaves of it is then swept, not taken for a checkpoint.
void remove_checkpoint(const fs::path& folder, index step) {
  const fs::path doomed = temporary_path(folder, step);
  std::error_code ignored;
  fs::rename(checkpoint_path(folder, step), doomed, ignored);
  fs::remove_all(doomed, ignored);
}

void prune(const fs::path& folder, index saved, index keep) {
  index kept = 0;
  for (const index step : newest_first(folder)) {
    const bool wanted = step <= saved && kept < keep;
    if (wanted)
      ++kept;
    else
      remove_checkpoint(folder, step);
  }
}

void write_files(const fs::path& folder, index step, const std::vector<NamedFile>& files) {
  const Manifest manifest = manifest_of(kKind, step, files);
  create_folders(folder);
  for (const NamedFile& file : files) write_file_durably(folder / file.name, file.bytes);
  write_file_durably(folder / kManifestName, manifest_text(manifest));
}

}  // namespace

const std::string& Checkpoint::bytes(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const NamedFile& file) { return file.name == name; });
  if (found == files.end())
    fail(ErrorCode::kModelDamaged, "{}: {} is missing", path.string(), name);
  return found->bytes;
}

fs::path save_checkpoint(const fs::path& folder, index step, const std::vector<NamedFile>& files,
                         index keep) {
  check(step >= 0 && keep >= 1, "checkpoint: step {} cannot be saved, keeping {}", step, keep);
  create_folders(folder);
  remove_interrupted_saves(folder);
  std::uintmax_t bytes = 0;
  for (const NamedFile& file : files) bytes += file.bytes.size();
  require_disk_space(folder, bytes);

  const fs::path temporary = temporary_path(folder, step);
  fs::path target = checkpoint_path(folder, step);
  std::error_code ignored;
  try {
    write_files(temporary, step, files);
    if (fs::exists(target, ignored)) {
      exchange_folders(temporary, target);
    } else {
      publish_folder(temporary, target);
    }
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
  fs::remove_all(temporary, ignored);
  prune(folder, step, keep);
  return target;
}

std::vector<index> checkpoint_steps(const fs::path& folder) {
  std::vector<index> steps;
  for (const std::string& name : names_in(folder)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

fs::path checkpoint_path(const fs::path& folder, index step) { return folder / folder_name(step); }

void remove_interrupted_saves(const fs::path& folder) {
  std::error_code ignored;
  for (const std::string& name : names_in(folder)) {
    if (is_stale(name)) fs::remove_all(folder / name, ignored);
  }
}

void remove_checkpoints(const fs::path& folder) {
  remove_interrupted_saves(folder);
  for (const index step : checkpoint_steps(folder)) remove_checkpoint(folder, step);
  std::error_code ignored;
  fs::remove(folder, ignored);
}

void remove_checkpoints_after(const fs::path& folder, index step) {
  for (const index later : checkpoint_steps(folder)) {
    if (later > step) remove_checkpoint(folder, later);
  }
  const std::vector<index> left = checkpoint_steps(folder);
  if (left.empty() || left.back() <= step) return;
  throw Error(
      ErrorCode::kWrite,
      fmt::format("{}: cannot be removed", checkpoint_path(folder, left.back()).string()),
      "a run cannot go back while later checkpoints are in its way; look at the permissions "
      "of the folder");
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
