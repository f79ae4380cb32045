// SPDX-License-Identifier: Apache-2.0
// Which settings of an encoder have an effect on which layers.
#pragma once

#include <string_view>

#include "fovea/model/encoder_sizes.h"

namespace fovea {

/// The missing thing without which the setting of this name has no effect, as "an attention layer
/// in --encoder"; "" if it has one. `stages` are those of the resolved configuration.
std::string_view lacks_for_effect(std::string_view field, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages);

}  // namespace fovea
