// SPDX-License-Identifier: Apache-2.0
// Which parts a model has. A field whose FieldTraits name a part has no effect on a model without.
#pragma once

#include <string_view>

#include "fovea/model/encoder_sizes.h"

namespace fovea {

/// The kind of layer that a part belongs to.
enum class PartOwner { kAny, kAttention, kTransformer, kLstm };
PartOwner owner_of_part(std::string_view part);

/// The missing thing without which a field of this part ("": a part of all models) has no effect,
/// as "an attention layer in --encoder"; "" if it has one. `stages` are those of the resolved
/// configuration.
std::string_view lacks_for_effect(std::string_view part, const EncoderConfig& config,
                                  const std::vector<SizedStage>& stages);

}  // namespace fovea
