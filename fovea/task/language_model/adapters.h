// SPDX-License-Identifier: Apache-2.0
// Adapters of a language model (--lora): which weights have them, and models that are a base and
// its adapters. A folder of such a run holds the adapters alone, named as PEFT names them.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/nn/low_rank.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// The factor of B A.
double adapter_scale(const LanguageModelBase& options);

/// Adapters as the options ask for. `architecture` names the tensors of the model ("" : that by
/// which it would be exported). Throws kOptionValue for targets that the model does not have, and
/// kModelWrongKind if no architecture has its layers.
std::unique_ptr<LowRankAdapters> make_adapters(const LanguageModel& model,
                                               const LanguageModelSettings& settings,
                                               const std::string& architecture);

/// The weights that get adapters.
std::vector<LowRankTarget> adapter_targets(const LanguageModel& model,
                                           const LanguageModelBase& options,
                                           const std::string& architecture);

/// The sizes of adapters of such a model.
AdapterSizes adapter_sizes(const LanguageModelConfig& config, const LanguageModelBase& options,
                           const std::string& architecture);

/// XXH3 of the files of a model's weights. Throws kModelMissing.
std::string weights_checksum(const std::filesystem::path& model);

/// The base of a folder of adapters, with these merged into its weights. Throws kModelMissing
/// without the base, and kModelWrongKind for another one than that which they were trained on.
LanguageModel load_adapted(const std::filesystem::path& folder,
                           const LanguageModelSettings& settings, const std::string& architecture);

/// The names of what export_peft() writes, adapter_config.json last.
inline constexpr std::array<std::string_view, 2> kPeftFiles = {"adapter_model.safetensors",
                                                               "adapter_config.json"};

/// Writes the adapters of a run folder as PEFT's two files. Throws kModelWrongKind for a folder
/// without adapters, before anything is written; kDiskFull, kWrite.
void export_peft(const std::filesystem::path& run, const std::filesystem::path& folder);

/// The model that a training began from, the one that this began from, and so on, as long as they
/// are adapters. Throws as load_settings() does, and kModelDamaged for adapters on themselves.
std::vector<std::filesystem::path> bases_of(const LanguageModelBase& options);

/// Throws kModelMissing or kModelWrongKind unless the base is there as the adapters know it.
void require_same_base(const LanguageModelBase& options);

}  // namespace fovea
