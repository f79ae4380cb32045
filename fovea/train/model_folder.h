// SPDX-License-Identifier: Apache-2.0
// A model on the disk: a folder of files, and the manifest that lists them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/bytes.h"
#include "fovea/base/types.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

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

/// A file of a folder: its contents, and its plain name (letters and digits, with ._- inside).
struct NamedFile {
  std::string name;
  std::string bytes;
  /// What stands behind them, in the memory of others; none of a file that was read.
  std::vector<std::string_view> more = {};
  std::vector<NamedTensor> held = {};  ///< keeps that memory, if nobody else does

  std::uintmax_t size() const;
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

/// Writes the file whole, or not at all (write_file_atomically()).
void write_named_file(const std::filesystem::path& folder, const NamedFile& file);

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

// A model on the disk: a folder with these files.
//
//   config.json, tokenizer.txt   written once; listed in MANIFEST.json
//   model.safetensors            replaced by one rename whenever there are better weights
//
// The file of the weights also holds its own checksum and that of the manifest (safetensors.h). So
// one rename replaces all three, and weights of another model are detected. A checkpoint is such a
// folder too; its manifest also lists the weights.

inline constexpr std::string_view kWeightsName = "model.safetensors";

/// Starts a model: removes old weights and an old manifest, then writes the files, the manifest
/// last. So a folder with a manifest has all of these files. On failure none of them is left, nor a
/// folder that was made for them. Throws kWrite, kDiskFull.
void write_model_files(const std::filesystem::path& folder, std::span<const NamedFile> files);

/// Writes or replaces the weights of a model whose other files exist. `dtype`: what their values
/// are rounded to.
void write_model_weights(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata = {}, DType dtype = DType::kFloat32);

/// Reads a file of the model and verifies it. Throws kModelMissing if the folder is no model,
/// kModelDamaged.
std::string read_model_file(const std::filesystem::path& folder, std::string_view name);

/// Reads what a run appends to, such as metrics.jsonl; "" if there is no such file. Throws
/// kModelDamaged for a folder or FIFO in its place.
std::string read_run_file(const std::filesystem::path& file);

/// Reads the weights and verifies them. Throws kModelMissing if the folder has none (yet),
/// kModelDamaged.
Safetensors read_model_weights(const std::filesystem::path& folder);

/// The weights of a model, of which each tensor can be read by itself.
class ModelWeights {
 public:
  /// Reads the names and shapes. Throws as read_model_weights() does.
  explicit ModelWeights(const std::filesystem::path& folder);
  const SafetensorsSource& tensors() const { return tensors_; }
  /// Reads all bytes once. Throws kModelDamaged for wrong ones.
  void verify() const;

 private:
  const std::filesystem::path path_;
  const Manifest manifest_;
  const FileSource file_;
  const SafetensorsSource tensors_;
};

/// The update after which the weights in `folder` were saved, from their metadata; nothing if the
/// metadata does not say it. Throws kModelDamaged if it is no valid number.
std::optional<index> update_of(const Safetensors& weights, const std::filesystem::path& folder);

struct FileCheck {
  std::string name;
  std::string problem;   ///< "" if the file is whole
  bool to_come = false;  ///< it does not exist: the training has saved no weights yet
};

/// Reads and checks every file of a model or checkpoint: the manifest, what it lists, the weights.
/// Throws kModelMissing if the folder is no model.
std::vector<FileCheck> verify_model_folder(const std::filesystem::path& folder);

}  // namespace fovea
