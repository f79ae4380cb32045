// SPDX-License-Identifier: Apache-2.0
// The model that a training begins from (--base): one of fovea, or one from elsewhere. Its layers,
// their sizes and its tokens are those of the run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/task/base.h"
#include "fovea/task/language_model/language_model.h"

namespace fovea {

/// Recipe and batches with which a model that is trained already goes on, where nobody says more:
/// small steps, one pass over the text.
void apply_base_recipe(LanguageModelSettings& settings);

/// Takes from settings.from.base what it decides. `set`: the names of the fields that a user has
/// set. Throws kOptionValue for one of them that the base has otherwise, and what loading throws.
void take_base(LanguageModelSettings& settings, const std::vector<std::string>& set);

/// The tokenizer of a model, as a folder of fovea keeps it.
TokenizerData tokenizer_of_base(const std::filesystem::path& base);

/// The model of settings.from.base, with what settings.model changes. The types are those of a
/// model from elsewhere.
LanguageModel load_base(const LanguageModelSettings& settings, WeightTypes types);
/// How a training holds the weights of its base: under adapters they stay as they lie.
WeightTypes types_of_base(const LanguageModelBase& options);

/// Freezes the parameters that models of this architecture do not have, such as most biases of
/// qwen2: they are zero, and stay so.
void freeze_what_is_lacking(const LanguageModel& model, std::string_view architecture);

/// The parts that --freeze and --layer-lr-decay mean.
BaseParts base_parts(const LanguageModelConfig& config);

/// Freezes what --freeze names: "embeddings,0-3". Throws kOptionValue for what the model does not
/// have, or where nothing is left to train.
void freeze_parts(const LanguageModel& model, std::string_view parts);

/// Freezes what a run does not train.
void freeze_for(const LanguageModel& model, const LanguageModelRun& run);
/// How many parameters that are. Throws as freeze_parts().
index frozen_count(const LanguageModelRun& run);

/// Makes a model folder of a model from elsewhere, or of a model and adapters (--adapter, or those
/// that the folder `model` holds). Returns its architecture. Throws as loading does, before
/// anything is written, kDiskFull and kWrite.
std::string import_model(const std::filesystem::path& model,
                         const std::vector<std::string>& adapters,
                         const std::filesystem::path& folder, Precision type);

}  // namespace fovea
