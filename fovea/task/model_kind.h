// SPDX-License-Identifier: Apache-2.0
// The kind of model in a folder, for commands that take several kinds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace fovea {

enum class ModelKind : std::uint8_t { kLanguageModel, kClassifier, kTagger, kTranslator };

/// Reads config.json of a model folder or a checkpoint. Throws kModelMissing, kModelDamaged, and
/// kModelWrongKind for a kind that this version does not know.
ModelKind kind_of_model(const std::filesystem::path& folder);

/// The checksum of config.json, by which an evaluation says of which model it is: that file has the
/// settings as the run began, and stays the same. Throws kModelMissing, kModelDamaged.
std::string config_checksum(const std::filesystem::path& folder);

}  // namespace fovea
