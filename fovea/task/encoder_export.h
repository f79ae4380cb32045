// SPDX-License-Identifier: Apache-2.0
// Writes a classifier, a tagger or a sentence encoder that began from an encoder as a folder that
// transformers opens, and its adapters as one that PEFT opens; or makes a whole model of adapters.
#pragma once

#include <filesystem>
#include <string>

#include "fovea/base/precision.h"
#include "fovea/task/task_table.h"
#include "fovea/tensor/tensor.h"

namespace fovea {

/// Whether models of this kind may stand on an encoder.
bool is_on_encoder(ModelKind kind);

/// Writes the files, or replaces those that are there; weights have the type `dtype`, kFloat32 or
/// kBFloat16. Returns the class of transformers. Throws before anything is written: kModelWrongKind
/// for a model that did not begin from an encoder, or with another head than transformers has;
/// kDiskFull. Throws kWrite. A sentence encoder has the files by which sentence-transformers knows
/// how vectors are made. (A folder 2_Normalize is named, but has no file.)
std::string export_encoder(const std::filesystem::path& model, const std::filesystem::path& folder,
                           DType dtype);

/// Writes the adapters of a run folder as PEFT's two files, with the head as modules_to_save.
/// Throws the same, also for a folder without adapters.
void export_encoder_adapters(const std::filesystem::path& run, const std::filesystem::path& folder);

/// Makes a model folder of adapters and their base. Returns the architecture of that. Throws as
/// loading does, kModelWrongKind for a model without adapters, kDiskFull and kWrite.
std::string import_encoder(const std::filesystem::path& run, const std::filesystem::path& folder,
                           Precision type);

}  // namespace fovea
