// SPDX-License-Identifier: Apache-2.0
// Writes a language model as a folder that Hugging Face transformers opens.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// The names of what an export writes, config.json last: a folder that has one is whole.
inline constexpr std::array<std::string_view, 5> kExportedFiles = {
    "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors",
    "config.json"};

/// Writes the files, or replaces those that are there; weights have the type `dtype`, kFloat32 or
/// kBFloat16. Returns the class of transformers. Throws before anything is written: kModelWrongKind
/// for what no architecture can say (hugging_face_form) and for subwords, kDiskFull. Throws kWrite.
std::string export_hugging_face(const LoadedLanguageModel& loaded,
                                const std::filesystem::path& folder, DType dtype);

}  // namespace fovea
