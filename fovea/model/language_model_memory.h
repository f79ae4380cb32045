// SPDX-License-Identifier: Apache-2.0
// What a language model takes in memory beside its parameters, told before it is made.
#pragma once

#include "fovea/base/context.h"
#include "fovea/grad/tape.h"
#include "fovea/model/language_model_config.h"

namespace fovea {

/// What a tape holds after one batch.
struct TapeLoad {
  index tokens = 0;
  TapeMode mode = TapeMode::kTrain;
};

/// Bytes of the values that a tape keeps of a batch; in training also of the gradients that are
/// alive at the same time. From its second step on, what a tape takes is within 4 % of it.
double activation_bytes(const LanguageModelConfig& config, const TapeLoad& load);

/// Bytes of the packed copies that products read instead of the weights (PackedWeight): of W^T for
/// the forward pass and, with kTrain, also of W for the backward pass. A training step of few
/// tokens reads its weights in place.
double packed_bytes(const LanguageModelConfig& config, const TapeLoad& load);

/// Bytes of scratch memory of all threads: what kernels take for the length of a call. Sequences
/// have `block` tokens.
double scratch_bytes(const Context& context, const LanguageModelConfig& config,
                     const TapeLoad& load);

/// Bytes of the keys and values of `tokens` tokens that a decoder keeps.
double cache_bytes(const LanguageModelConfig& config, index tokens);

}  // namespace fovea
