// SPDX-License-Identifier: Apache-2.0
// Predicts the memory that a translator takes besides its parameters, before it is made.
#pragma once

#include "fovea/base/context.h"
#include "fovea/model/encoder_memory.h"
#include "fovea/model/translator_config.h"

namespace fovea {

/// The batch for which memory is predicted.
struct TranslationLoad {
  TapeLoad source = {}, target = {};  ///< of the same mode
};

/// Bytes of the values that a tape keeps for a batch; in training also of the gradients that exist
/// at the same time.
double activation_bytes(const TranslatorConfig& config, const TranslationLoad& load);

/// Bytes of the packed copies that products read instead of the weights.
double packed_bytes(const TranslatorConfig& config, const TranslationLoad& load);

/// Bytes of scratch memory of all threads, which kernels take during a call. Sentences have `block`
/// tokens at most.
double scratch_bytes(const Context& context, const TranslatorConfig& config,
                     const TranslationLoad& load);

/// Bytes of the gradients of an update of so many tokens of both sides.
double gradient_bytes(const TranslatorConfig& config, index source_tokens, index target_tokens);

}  // namespace fovea
