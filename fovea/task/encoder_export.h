// SPDX-License-Identifier: Apache-2.0
// Writes a classifier, a tagger or a sentence encoder that began from an encoder as a folder that
// transformers opens.
#pragma once

#include <filesystem>
#include <string>

#include "fovea/task/classify/classifier.h"
#include "fovea/task/embed/sentence_encoder.h"
#include "fovea/task/tag/tagger.h"

namespace fovea {

/// Throws kModelWrongKind for a model of another program, which has its form already.
void require_ours(const std::filesystem::path& model, bool is_ours);

/// Writes the files, or replaces those that are there; weights have the type `dtype`, kFloat32 or
/// kBFloat16. Returns the class of transformers. Throws before anything is written: kModelWrongKind
/// for a model that did not begin from an encoder, or with another head than transformers has;
/// kDiskFull. Throws kWrite.
std::string export_encoder(const std::filesystem::path& model, LoadedClassifier loaded,
                           const std::filesystem::path& folder, DType dtype);
std::string export_encoder(const std::filesystem::path& model, LoadedTagger loaded,
                           const std::filesystem::path& folder, DType dtype);
/// With the files by which sentence-transformers knows how vectors are made. (A folder 2_Normalize
/// is named, but has no file.)
std::string export_encoder(const std::filesystem::path& model, LoadedSentenceEncoder loaded,
                           const std::filesystem::path& folder, DType dtype);

}  // namespace fovea
