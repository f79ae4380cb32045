// SPDX-License-Identifier: Apache-2.0
// Writes a translator as a folder that transformers opens.
#pragma once

#include <filesystem>
#include <string>

#include "fovea/task/translate/translator.h"

namespace fovea {

/// Writes the files, or replaces those that are there; weights have the type `dtype`, kFloat32 or
/// kBFloat16. Returns the class of transformers. Throws before anything is written: kModelWrongKind
/// for a model of another program, for options that transformers has no model for, which it names,
/// and for tokens other than those of SentencePiece; kDiskFull. Throws kWrite.
std::string export_translator(const LoadedTranslator& loaded, const std::filesystem::path& folder,
                              DType dtype);

}  // namespace fovea
