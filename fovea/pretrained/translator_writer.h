// SPDX-License-Identifier: Apache-2.0
// A translator in the form of transformers.
#pragma once

#include <span>
#include <vector>

#include "fovea/config/json.h"
#include "fovea/grad/parameter.h"
#include "fovea/model/translator.h"
#include "fovea/pretrained/translator_table.h"
#include "fovea/tensor/named_tensor.h"

namespace fovea {

/// The row of a model that is written. Throws kModelWrongKind if there is none; the error names
/// each option in which the closest differs. `config` is resolved.
const TranslatorArchitecture& translator_architecture_of(const TranslatorConfig& config);

/// config.json of such a model, but for its special tokens.
Json::Object translator_config_json(const TranslatorArchitecture& architecture,
                                    const TranslatorConfig& config);

/// The tensors of the parameters of such a model under the names of transformers, in the order of
/// columns in which its positions have sines and cosines. Biases that the model does not have are
/// zero. They share no memory with the parameters.
std::vector<NamedTensor> translator_tensors_of(const TranslatorArchitecture& architecture,
                                               const TranslatorConfig& config,
                                               std::span<Parameter* const> parameters);

}  // namespace fovea
