// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a tagger takes besides its parameters, before it is made.
#pragma once

#include "fovea/base/context.h"
#include "fovea/model/encoder_memory.h"
#include "fovea/model/tagger_config.h"

namespace fovea {

/// The batch for which memory is predicted.
struct WordLoad {
  TapeLoad tape{};       ///< of its words
  index characters = 0;  ///< of all its words
};

/// Bytes of the values that a tape keeps for a batch; in training also of the gradients that exist
/// at the same time.
double activation_bytes(const TaggerConfig& config, const WordLoad& load);

/// Bytes of the packed copies that products read instead of the weights.
double packed_bytes(const TaggerConfig& config, const WordLoad& load);

/// Bytes of scratch memory of all threads, which kernels take during a call. Sentences have `block`
/// words at most.
double scratch_bytes(const Context& context, const TaggerConfig& config, const WordLoad& load);

}  // namespace fovea
