// SPDX-License-Identifier: Apache-2.0
// Writes a classifier as a folder of a few megabytes.
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

#include "fovea/base/types.h"

namespace fovea {

/// The names of what export_compact() writes.
inline constexpr std::array<std::string_view, 3> kCompactFiles = {"config.json", "MANIFEST.json",
                                                                  "model.safetensors"};

struct CompactExport {
  index ngrams = 0, ngrams_before = 0;  ///< of the model
  index bytes = 0;                      ///< of model.safetensors
};

/// Writes the linear classifier of folder `model` into another, as a model folder whose
/// model.safetensors has at most so many bytes. Throws kModelWrongKind, before anything is written,
/// for a model of any other kind, and what load_classifier() and pruned() throw.
CompactExport export_compact(const std::filesystem::path& model,
                             const std::filesystem::path& folder, index bytes);

}  // namespace fovea
