// SPDX-License-Identifier: Apache-2.0
// The configurations of language models in folders of Hugging Face transformers, read and written.
#pragma once

#include <optional>
#include <string_view>

#include "fovea/config/json.h"
#include "fovea/pretrained/architecture.h"
#include "fovea/pretrained/foreign_json.h"

namespace fovea {

/// config.json of a model that is written, but for its special tokens. `config` is resolved.
Json::Object hugging_face_config(const Architecture& architecture,
                                 const LanguageModelConfig& config);

/// The name that transformers has for an activation, with a gate or without.
std::string_view hugging_face_name(LayerActivation activation);
/// The activation of such a name, if there is one.
std::optional<LayerActivation> activation_of_name(std::string_view name, bool gated);
/// The activation that a key names; `usual`: if the file does not have it. Gated: of a feed-forward
/// network with a gate. Throws kModelWrongKind for one that fovea does not know.
LayerActivation hugging_face_activation(const ForeignObject& config, std::string_view key,
                                        std::string_view usual, bool gated);
/// Keys of any config.json that are of training, of generation, of the program that wrote the file,
/// or of heads.
void ignore_what_says_nothing(const ForeignObject& config);

/// The config.json of the language model alone, of one that may have images, too (model_type
/// "gemma3").
Json::Object language_model_config(const Json& config);

struct HuggingFaceModel {
  const Architecture& architecture;
  LanguageModelConfig config;  ///< resolved
};

/// The model that a config.json describes. Throws kModelWrongKind for
/// an architecture, a key or a value that fovea does not know, by its name; kModelDamaged for sizes
/// that are missing or out of range.
HuggingFaceModel read_hugging_face_config(const ForeignObject& config);

}  // namespace fovea
