// SPDX-License-Identifier: Apache-2.0
// Writes a language model as a folder that Hugging Face transformers opens, or as a file of
// llama.cpp.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// Writes the files, or replaces those that are there: of a model that began from such a folder the
/// files of that one, with its weights; weights have the type `dtype`, kFloat32 or
/// kBFloat16. Returns the class of transformers. Throws before anything is written: kModelWrongKind
/// for what no architecture (architecture_of) or tokenizer.json can say, kDiskFull. Throws kWrite.
std::string export_hugging_face(const LoadedLanguageModel& loaded,
                                const std::filesystem::path& folder, DType dtype);

/// Writes the model as one GGUF file, which llama.cpp opens; one that began from such a file has
/// its metadata; matrices have the type of that name (gguf_weight_types). Returns the architecture.
/// Throws before anything is written: kModelWrongKind for what llama.cpp computes in another way,
/// kDiskFull. Throws kWrite.
std::string export_gguf(const LoadedLanguageModel& loaded, const std::filesystem::path& file,
                        std::string_view type);

}  // namespace fovea
