// SPDX-License-Identifier: Apache-2.0
// Adapters of a language model: which weights have them, and models that are a base and its
// adapters. A folder of such a run holds the adapters alone, named as PEFT names them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/nn/low_rank.h"
#include "fovea/pretrained/architecture.h"
#include "fovea/task/adapters.h"
#include "fovea/task/language_model/language_model.h"
#include "fovea/tensor/safetensors.h"

namespace fovea {

/// The architecture of this name, or, if that is "", the one by which such a model is exported.
/// Throws kModelWrongKind if there is none.
const Architecture& architecture_for(const LanguageModelConfig& config, const std::string& name);

/// Adapters as the options ask for; in a plan without values. `architecture` names the tensors of
/// the model ("" : that by which it would be exported). Throws kOptionValue for targets that the
/// model does not have, and kModelWrongKind if no architecture has its layers.
std::unique_ptr<LowRankAdapters> make_adapters(const LanguageModel& model,
                                               const LanguageModelSettings& settings,
                                               const std::string& architecture,
                                               ParameterMemory memory = ParameterMemory::kAllocate);

/// The weight at a matrix's place in the form of Hugging Face, as what an adapter changes.
LowRankTarget target_at(const LanguageModel& model, const TensorPlace& place);

/// The weights that get adapters.
std::vector<LowRankTarget> adapter_targets(const LanguageModel& model,
                                           const LanguageModelBase& options,
                                           const std::string& architecture);

/// The sizes of the adapters and of their base, of which the header is read alone. Throws as
/// loading it does.
AdaptedBase plan_adapted(const LanguageModelSettings& settings, const std::string& architecture);
/// Gives the model that is planned for a run the adapters of that, if it has some.
ModelChange<LanguageModel> adapters_for_plan(const LanguageModelRun& run);

/// The weights of a folder of adapters, which are as many as its config.json asks for. Throws
/// kModelMissing, kModelDamaged.
Safetensors read_adapters(const std::filesystem::path& folder,
                          const LanguageModelSettings& settings, const std::string& architecture);

/// Merges adapters into the weights of their model, if none of these lies as in its file. Returns
/// whether it did.
bool merge_into_values(const LanguageModel& model, LowRankAdapters& adapters);

struct AdaptedModel {
  LanguageModel model;
  std::unique_ptr<LowRankAdapters> adapters;  ///< null: they are merged into its weights
};
/// The base of a folder of adapters, with these: merged into its weights if those are widened.
/// Throws kModelMissing without the base, and kModelWrongKind for another one than that which they
/// were trained on.
AdaptedModel load_adapted(const std::filesystem::path& folder,
                          const LanguageModelSettings& settings, const std::string& architecture,
                          WeightTypes types);

}  // namespace fovea
