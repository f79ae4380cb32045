// SPDX-License-Identifier: Apache-2.0
// The layers that --model and --encoder ask for.
#pragma once

#include <vector>

#include "fovea/model/encoder_sizes.h"
#include "fovea/model/language_model_config.h"

namespace fovea {

/// The stages of a resolved configuration. Throws kOptionValue or kShape.
std::vector<SizedStage> sized_stages(const LanguageModelConfig& config);

/// The configuration of the encoder of a resolved configuration, with the defects of --compat.
EncoderConfig encoder_of(const LanguageModelConfig& config);

}  // namespace fovea
