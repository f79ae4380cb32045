// SPDX-License-Identifier: Apache-2.0
// A model on the disk: a folder in the layout people know.
//
//   config.json, tokenizer.txt   written once; listed in MANIFEST.json
//   model.safetensors            replaced by one rename, as often as there is a better one
//
// The weights carry their checksum and that of the manifest inside (safetensors.h), so one rename
// replaces all three, and weights that belong to another model are found. A checkpoint is such a
// folder too: there the manifest lists the weights.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/base/types.h"
#include "fovea/tensor/safetensors.h"
#include "fovea/train/manifest.h"

namespace fovea {

inline constexpr std::string_view kWeightsName = "model.safetensors";

/// Begins a model: what was in the folder under these names is gone first, the manifest comes last,
/// so that a folder is a model with these files, or none. On failure none of them is there, and no
/// folder that was made for them. Throws kWrite, kDiskFull.
void write_model_files(const std::filesystem::path& folder, std::span<const NamedFile> files);

/// Writes or replaces the weights of a model whose files are there.
void write_model_weights(const std::filesystem::path& folder, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata = {});

/// A file of the model, verified. Throws kModelMissing if the folder is no model, kModelDamaged.
std::string read_model_file(const std::filesystem::path& folder, std::string_view name);

/// The weights, verified. Throws kModelMissing if the folder has none (yet), kModelDamaged.
Safetensors read_model_weights(const std::filesystem::path& folder);

/// The update after which the weights in `folder` were saved, as their metadata says; nothing where
/// it says none. Throws kModelDamaged if that is no number of updates.
std::optional<index> update_of(const Safetensors& weights, const std::filesystem::path& folder);

struct FileCheck {
  std::string name;
  std::string problem;   ///< "" if the file is whole
  bool to_come = false;  ///< it is not there: the training has saved no weights yet
};

/// Reads and checks every file of a model or checkpoint: the manifest, what it lists, the weights.
/// Throws kModelMissing if the folder is no model.
std::vector<FileCheck> verify_model_folder(const std::filesystem::path& folder);

}  // namespace fovea
