// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/model_folder.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/words.h"
#include "fovea/config/json.h"
#include "fovea/tensor/checksum.h"
#include "fovea/train/checkpoint.h"

namespace fovea {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kChecksum = "xxh3-128";

[[noreturn]] void damaged(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::kModelDamaged, fmt::format("{}: {}", where, what),
              "restore the folder from a copy, or go back to an earlier checkpoint");
}

bool is_plain(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name[0] != '.' && name != kManifestName &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Json json_of(const Manifest& manifest) {
  Json::Array files;
  for (const ManifestEntry& entry : manifest.files) {
    files.push_back(Json::Object{
        {"name", entry.name}, {"size", entry.size}, {std::string(kChecksum), entry.checksum}});
  }
  return Json::Object{{"version", kVersion},
                      {"kind", manifest.kind},
                      {"step", manifest.step},
                      {"files", std::move(files)}};
}

Manifest manifest_from(const Json& json) {
  if (json.at("version").whole() != kVersion) {
    fail(ErrorCode::kConfig, "version {} is unknown; this fovea reads version {}",
         json.at("version").whole(), kVersion);
  }
  Manifest manifest{json.at("kind").text(), json.at("step").whole(), {}};
  for (const Json& file : json.at("files").array()) {
    ManifestEntry entry{file.at("name").text(), file.at("size").whole(), file.at(kChecksum).text()};
    if (!is_plain(entry.name) || manifest.find(entry.name) != nullptr) {
      fail(ErrorCode::kConfig, "the file name {} is not allowed, or there twice",
           printable(entry.name));
    }
    manifest.files.push_back(std::move(entry));
  }
  return manifest;
}

}  // namespace

const ManifestEntry* Manifest::find(std::string_view name) const {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const ManifestEntry& entry) { return entry.name == name; });
  return found == files.end() ? nullptr : &*found;
}

std::uintmax_t NamedFile::size() const {
  std::uintmax_t size = bytes.size();
  for (const std::string_view piece : more) size += piece.size();
  return size;
}

void write_named_file(const fs::path& folder, const NamedFile& file) {
  write_file_atomically(folder / file.name, file.bytes, file.more);
}

Manifest manifest_of(std::string_view kind, index step, std::span<const NamedFile> files) {
  Manifest manifest{std::string(kind), step, {}};
  for (const NamedFile& file : files) {
    if (!is_plain(file.name) || manifest.find(file.name) != nullptr) {
      fail(ErrorCode::kInternal, "a manifest cannot list {}", printable(file.name));
    }
    manifest.files.push_back(
        {file.name, static_cast<index>(file.size()), xxh3_128(file.bytes, file.more)});
  }
  return manifest;
}

std::string manifest_text(const Manifest& manifest) {
  Json body = json_of(manifest);
  std::string checksum = xxh3_128(body.line());
  return Json(Json::Object{{"manifest", std::move(body)},
                           {std::string(kChecksum), std::move(checksum)}})
      .pretty();
}

Manifest parse_manifest(std::string_view text, const std::string& where) {
  const Json json = parse_json(text, {where, ErrorCode::kModelDamaged});
  try {
    const Json& body = json.at("manifest");
    if (json.at(kChecksum).text() != xxh3_128(body.line())) {
      fail(ErrorCode::kConfig, "wrong checksum");
    }
    Manifest manifest = manifest_from(body);
    if (manifest_text(manifest) != text) fail(ErrorCode::kConfig, "not as fovea writes it");
    return manifest;
  } catch (const Error& error) {
    damaged(where, error.what());
  }
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifestName;
  std::string text;
  try {
    text = read_file(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kRead || error.code() == ErrorCode::kOutOfMemory) throw;
    damaged(folder.string(), fmt::format("no manifest: {}", error.what()));
  }
  return parse_manifest(text, path.string());
}

std::string read_verified(const fs::path& folder, const ManifestEntry& entry) {
  const fs::path path = folder / entry.name;
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) damaged(path.string(), fmt::format("missing or unreadable: {}", error.message()));
  if (size != static_cast<std::uintmax_t>(entry.size)) {
    damaged(path.string(), fmt::format("expected {} bytes, got {}", entry.size, size));
  }
  std::string bytes = read_file(path);
  const std::string checksum = xxh3_128(bytes);
  if (checksum != entry.checksum) {
    damaged(path.string(), fmt::format("wrong checksum: expected {}, got {}",
                                       printable(entry.checksum), checksum));
  }
  return bytes;
}

std::vector<NamedFile> read_all_verified(const fs::path& folder, const Manifest& manifest) {
  std::vector<NamedFile> files;
  for (const ManifestEntry& entry : manifest.files) {
    files.push_back({entry.name, read_verified(folder, entry)});
  }
  return files;
}

void require_disk_space(const fs::path& folder, std::uintmax_t bytes) {
  const std::uintmax_t needed = bytes + bytes / 5;
  const std::uintmax_t available = free_disk_bytes(folder);
  if (available >= needed) return;
  throw Error(ErrorCode::kDiskFull,
              fmt::format("{}: {} bytes are needed to save safely, {} are free", folder.string(),
                          needed, available),
              "free some space, or keep fewer checkpoints (--keep)");
}

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kKind = "model";
constexpr std::string_view kManifestKey = "manifest";  // in the metadata of the weights
constexpr std::string_view kWriteAgain =
    "the training's command with --resume writes the weights again from the newest checkpoint; a "
    "checkpoint is a model of its own, too: DIR/checkpoints/step-...";

[[noreturn]] void missing(const fs::path& folder, std::string_view what,
                          std::string hint = "name a folder that fovea train has written") {
  throw Error(ErrorCode::kModelMissing, fmt::format("{}: {}", folder.string(), what),
              std::move(hint));
}

// A training saves its weights before its first checkpoint: if there is a checkpoint, missing
// weights are lost and not yet to come.
bool weights_are_to_come(const fs::path& folder) {
  // A link that leads nowhere, or to itself, is a file that is damaged and not to come.
  std::error_code ignored;
  return fs::symlink_status(folder / kWeightsName, ignored).type() == fs::file_type::not_found &&
         checkpoint_steps(checkpoints_of(folder)).empty();
}

[[noreturn]] void missing_weights(const fs::path& folder) {
  if (weights_are_to_come(folder)) {
    missing(folder, "no weights have been saved yet",
            "the first evaluation or checkpoint of the training saves them; if it has ended, the "
            "same command with --resume goes on");
  }
  missing(folder, fmt::format("{} is missing", kWeightsName), std::string(kWriteAgain));
}

Manifest model_manifest(const fs::path& folder) {
  std::error_code ignored, error;
  if (!fs::exists(folder, ignored)) missing(folder, "no such folder");
  if (!fs::is_directory(folder, ignored)) missing(folder, "expected the folder of a model");
  // In a folder that may not be searched it is not missing, but cannot be read.
  if (!fs::exists(folder / kManifestName, error) && error != std::errc::permission_denied) {
    missing(folder, fmt::format("no model: {} is missing", kManifestName));
  }
  return read_manifest(folder);
}

// A folder or FIFO in place of a file is damage of the model, as --verify says: the user has named
// the model, not that file.
template <class Read>
auto read_regular(Read&& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNotARegularFile) throw;
    fail(ErrorCode::kModelDamaged, "{}", error.what());
  }
}

void require_owner(const SafetensorsMetadata& metadata, const fs::path& weights,
                   const Manifest& manifest) {
  const auto belongs_to = metadata.find(std::string(kManifestKey));
  if (belongs_to != metadata.end() && belongs_to->second == xxh3_128(manifest_text(manifest))) {
    return;
  }
  throw Error(ErrorCode::kModelDamaged,
              fmt::format("{}: the weights belong to another model", weights.string()),
              std::string(kWriteAgain));
}

void require_weights(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / kWeightsName, ignored)) missing_weights(folder);
}

Safetensors parsed_weights(const fs::path& folder, const Manifest& manifest) {
  const fs::path path = folder / kWeightsName;
  if (const ManifestEntry* entry = manifest.find(kWeightsName)) {
    return parse_safetensors(read_verified(folder, *entry), path.string(), ChecksumRule::kRequired);
  }
  require_weights(folder);
  Safetensors weights =
      read_regular([&] { return read_safetensors(path, ChecksumRule::kRequired); });
  require_owner(weights.metadata, path, manifest);
  return weights;
}

FileSource opened_weights(const fs::path& folder) {
  require_weights(folder);
  return read_regular([&] { return FileSource(folder / kWeightsName); });
}

template <class F>
FileCheck checked(std::string_view name, F&& read) {
  try {
    read();
    return {std::string(name), ""};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kOutOfMemory) throw;
    return {std::string(name), error.what()};
  }
}

}  // namespace

void write_model_files(const fs::path& folder, std::span<const NamedFile> files) {
  const Manifest manifest = manifest_of(kKind, 0, files);
  const std::vector<fs::path> made = create_folders(folder);
  remove_file(folder / kWeightsName);
  remove_file(folder / kManifestName);
  try {
    for (const NamedFile& file : files) write_named_file(folder, file);
    write_file_atomically(folder / kManifestName, manifest_text(manifest));
  } catch (...) {
    std::error_code ignored;
    fs::remove(folder / kManifestName, ignored);
    for (const NamedFile& file : files) fs::remove(folder / file.name, ignored);
    remove_empty_folders(made);
    throw;
  }
}

void write_model_weights(const fs::path& folder, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata, DType dtype) {
  SafetensorsMetadata all = metadata;
  all[std::string(kManifestKey)] = xxh3_128(manifest_text(model_manifest(folder)));
  std::vector<NamedTensor> rounded;
  if (dtype != DType::kFloat32) {
    for (const NamedTensor& one : tensors) rounded.push_back({one.name, one.tensor.to(dtype)});
    tensors = rounded;
  }
  std::uintmax_t bytes = 0;
  for (const NamedTensor& one : tensors)
    bytes += static_cast<std::uintmax_t>(one.tensor.byte_size());
  require_disk_space(folder, bytes);
  write_safetensors(folder / kWeightsName, tensors, all);
}

std::string read_model_file(const fs::path& folder, std::string_view name) {
  const Manifest manifest = model_manifest(folder);
  const ManifestEntry* entry = manifest.find(name);
  if (entry == nullptr) missing(folder, fmt::format("{} is missing", name));
  return read_verified(folder, *entry);
}

std::string read_run_file(const fs::path& file) {
  if (!fs::exists(file)) return "";
  return read_regular([&] { return read_file(file); });
}

Safetensors read_model_weights(const fs::path& folder) {
  return parsed_weights(folder, model_manifest(folder));
}

ModelWeights::ModelWeights(const fs::path& folder)
    : path_(folder / kWeightsName),
      manifest_(model_manifest(folder)),
      file_(opened_weights(folder)),
      tensors_(file_, path_.string()) {
  if (manifest_.find(kWeightsName) != nullptr) return;
  require_owner(parse_safetensors_header(file_, path_.string()).metadata, path_, manifest_);
}

void ModelWeights::verify() const {
  tensors_.verify(ChecksumRule::kRequired);
  const ManifestEntry* const entry = manifest_.find(kWeightsName);
  if (entry == nullptr || xxh3_128_of(file_) == entry->checksum) return;
  damaged(path_.string(), "wrong checksum: it is not that of the manifest");
}

std::optional<index> update_of(const Safetensors& weights, const fs::path& folder) {
  const auto found = weights.metadata.find("step");
  if (found == weights.metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  index update = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), update);
  if (error != std::errc() || end != text.data() + text.size() || update < 0) {
    fail(ErrorCode::kModelDamaged, "{}: step: expected a number of updates, got '{}'",
         (folder / kWeightsName).string(), text);
  }
  return update;
}

std::vector<FileCheck> verify_model_folder(const fs::path& folder) {
  std::vector<FileCheck> checks;
  Manifest manifest;
  try {
    manifest = model_manifest(folder);
    checks.push_back({std::string(kManifestName), ""});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kModelDamaged) throw;
    return {{std::string(kManifestName), error.what()}};
  }
  for (const ManifestEntry& entry : manifest.files) {
    checks.push_back(checked(entry.name, [&] { read_verified(folder, entry); }));
  }
  if (manifest.kind != kKind) return checks;
  if (weights_are_to_come(folder)) {
    checks.push_back({std::string(kWeightsName), "", true});
  } else {
    checks.push_back(checked(kWeightsName, [&] { parsed_weights(folder, manifest); }));
  }
  return checks;
}

}  // namespace fovea
