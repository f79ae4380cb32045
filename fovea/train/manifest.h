// SPDX-License-Identifier: Apache-2.0
// MANIFEST.json: lists the files that a folder must hold, with sizes and checksums.
//
//   {
//     "manifest": {
//       "version": 1,
//       "kind": "checkpoint",
//       "step": 500,
//       "files": [ {"name": "model.safetensors", "size": 1024, "xxh3-128": "..."}, ... ]
//     },
//     "xxh3-128": "..."        of the value of "manifest", in one line without spaces
//   }
//
// XXH3 of 128 bits finds damage (7 GB/s here). It does not prove who wrote a file. A SHA-256 in the
// manifest would not prove it either, as anyone who can change the file can change the manifest.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"

namespace fovea {

/// A file of a folder: its contents, and its plain name (letters and digits, with ._- inside).
struct NamedFile {
  std::string name;
  std::string bytes;
};

inline constexpr std::string_view kManifestName = "MANIFEST.json";

struct ManifestEntry {
  std::string name;
  index size = 0;
  std::string checksum;
};

struct Manifest {
  std::string kind;  ///< "checkpoint" or "model"
  index step = 0;
  std::vector<ManifestEntry> files;

  /// The entry of that name, or nullptr.
  const ManifestEntry* find(std::string_view name) const;
};

/// The manifest of these files. Throws kInternal for a name that is not plain or occurs twice.
Manifest manifest_of(std::string_view kind, index step, std::span<const NamedFile> files);

/// The text of MANIFEST.json: the same manifest gives the same bytes.
std::string manifest_text(const Manifest& manifest);

/// Reads what manifest_text wrote; other text is an error. Throws kModelDamaged; `where` begins the
/// message.
Manifest parse_manifest(std::string_view text, const std::string& where);

/// The manifest of a folder. Throws kModelDamaged if it is missing or damaged, kRead.
Manifest read_manifest(const std::filesystem::path& folder);

/// Reads a file of the folder. Throws kModelDamaged unless it has the size and checksum of the
/// entry.
std::string read_verified(const std::filesystem::path& folder, const ManifestEntry& entry);

/// All files of the manifest, each verified.
std::vector<NamedFile> read_all_verified(const std::filesystem::path& folder,
                                         const Manifest& manifest);

/// Throws kDiskFull unless 1.2 times `bytes` are free on the disk of `folder`, which need not exist
/// yet.
void require_disk_space(const std::filesystem::path& folder, std::uintmax_t bytes);

}  // namespace fovea
