// SPDX-License-Identifier: Apache-2.0
// Adapters of a language model for other programs: folders of PEFT and files of llama.cpp, written.
// Those that it is given when it is loaded (--adapter).
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "fovea/model/language_model.h"
#include "fovea/nn/low_rank.h"
#include "fovea/task/peft.h"

namespace fovea {

/// Writes the adapters of a run folder as PEFT's two files. Throws kModelWrongKind for a folder
/// without adapters, before anything is written; kDiskFull, kWrite.
void export_peft(const std::filesystem::path& run, const std::filesystem::path& folder);

/// Writes them as one GGUF file, which llama.cpp adds to the model (--lora). Throws the same.
void export_gguf_adapter(const std::filesystem::path& run, const std::filesystem::path& file);

/// A model, and where its weights are.
struct AdaptedModelFile {
  const LanguageModel& model;
  const std::filesystem::path& path;
  std::string architecture;  ///< "": that by which it would be exported
};
/// Gives the model these adapters. Throws kModelMissing and kModelDamaged for the folder,
/// kModelWrongKind for adapters of another model, or of a kind that fovea does not know.
std::unique_ptr<LowRankAdapters> load_adapters(const AdaptedModelFile& base,
                                               const AdapterChoice& choice);

}  // namespace fovea
