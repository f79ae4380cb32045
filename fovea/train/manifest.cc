// SPDX-License-Identifier: Apache-2.0
#include "fovea/train/manifest.h"

#include <algorithm>

#include "fovea/base/check.h"
#include "fovea/base/file.h"
#include "fovea/base/printable.h"
#include "fovea/config/json.h"
#include "fovea/tensor/checksum.h"

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

Manifest manifest_of(std::string_view kind, index step, std::span<const NamedFile> files) {
  Manifest manifest{std::string(kind), step, {}};
  for (const NamedFile& file : files) {
    if (!is_plain(file.name) || manifest.find(file.name) != nullptr) {
      fail(ErrorCode::kInternal, "a manifest cannot list {}", printable(file.name));
    }
    manifest.files.push_back(
        {file.name, static_cast<index>(file.bytes.size()), xxh3_128(file.bytes)});
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

}  // namespace fovea
