// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a language model takes besides its parameters, before the model is made.
#pragma once

#include "fovea/base/context.h"
#include "fovea/model/encoder_memory.h"
#include "fovea/model/language_model_config.h"

namespace fovea {

/// Bytes of the values that a tape keeps for a batch; in training also of the gradients that exist
/// at the same time. From its second step on, a tape takes within 4 % of this.
double activation_bytes(const LanguageModelConfig& config, const TapeLoad& load);

/// Bytes of the packed copies that products read instead of the weights (PackedWeight): of W^T for
/// the forward pass and, with kTrain, also of W for the backward pass. A training step of few
/// tokens reads its weights in place.
double packed_bytes(const LanguageModelConfig& config, const TapeLoad& load);

/// Bytes of scratch memory of all threads, which kernels take during a call. Sequences have `block`
/// tokens.
double scratch_bytes(const Context& context, const LanguageModelConfig& config,
                     const TapeLoad& load);

/// Bytes of the gradients of an update of `tokens` tokens in training, and of what the optimizer
/// keeps besides the moments.
double gradient_bytes(const LanguageModelConfig& config, index tokens);

/// Bytes of the keys and values that a decoder keeps for `tokens` tokens.
double cache_bytes(const LanguageModelConfig& config, index tokens);

}  // namespace fovea
